import { sql } from 'kysely';
import { expect } from 'vitest';
import { JSON_LIMITS } from '../../src/sync/page/json-limits.js';
import { entryJson, raw } from './entries.js';
import { refresh } from './reports.js';
import type { StoreSetup } from './store.js';

/** Zones with the earliest and the latest local times, with daylight saving time, and with offsets of half hours and seconds. */
export const ZONES = ['UTC', 'Europe/Berlin', 'Pacific/Kiritimati', 'America/St_Johns', 'Etc/GMT+12', 'Asia/Kathmandu'];

const USUAL_TIME = '2026-02-28T10:00:00.123Z';
const HELD_TIMES = [
  ...['9000-12-31T23:59:59-14:00', '1000-01-01T00:00:00+14:00', '1582-10-10T12:00:00Z', '1893-03-31T23:59:59+00:00'],
  ...['2026-03-29T02:30:00+01:00', '2026-02-28T10:00:00.123456+05:45'],
];
const LOST_TIMES = [
  ...['9999-12-31T23:59:59Z', '9999-12-31T23:59:59-14:00', '0001-01-01T00:00:00+02:00', '0001-01-01T00:00:00Z'],
  ...['2026-01-01T24:00:00Z', '2026-02-28T24:00:01Z', '\uff12026-02-28T10:00:00Z'],
];
const DATES = ['9999-12-31', '0001-01-01', '1582-10-10', '2026-02-28'];
const NUMBERS = ['12345678901234567890', '-98765432109876543210.0123456789', '1e-20', '1E+25', '0.10', '-0'];
const TEXTS = [
  ...['\u0661\u0662\u0663', '\uff11\uff12', '12345678901234567890,12', '1.234', '24:00', '24:00:00', '1,5 €'],
  ...['31.12.9999', '1.1.0001', '29.02.2023', '\uff13\uff11.12.2026', '\u{1f9fe} \'"\\ \u202e\t\n'],
];

/** Levels that are left for a field, in an element of an array in the document of an entry. */
const DEEPEST = JSON_LIMITS.depth - 4;
const nested = (levels: number) => raw(`${'{"a":['.repeat(levels / 2)}1${']}'.repeat(levels / 2)}`);

const SHAPES = [
  { wert: raw('12345678901234567890') },
  [raw('12345678901234567890.5'), [{ tief: '24:00' }]],
  [[{ tief: raw('1') }]],
  nested(DEEPEST),
];
const DOCUMENTS = [
  ...[...HELD_TIMES, ...LOST_TIMES].map((am) => ({ am })),
  ...DATES.map((datum) => ({ datum })),
  ...NUMBERS.map((betrag) => ({ betrag: raw(betrag) })),
  ...TEXTS.map((betrag) => ({ betrag, am: betrag, datum: betrag })),
  ...SHAPES.map((shape) => ({ betrag: shape, am: shape, objekt: shape })),
  { objekt: 'x' },
];
const USUAL_DOCUMENTS = 60;
const USUAL = { am: USUAL_TIME, datum: '2026-02-28', betrag: raw('1.10'), objekt: { wert: raw('1') } };

/** A view or a call of the functions, with its columns and what it contains. */
export interface Relation {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly kind: Kind }[];
  readonly rows: readonly (readonly Cell[])[];
}
/** How a client writes a value: `time` in ISO 8601, `date` as YYYY-MM-DD, `json` and `list` as JSON, the others as they are. */
export type Kind = 'time' | 'date' | 'json' | 'list' | 'number' | 'interval' | 'text';
export type Cell = string | null;

const KINDS: Readonly<Record<string, Kind>> = {
  ...{ 'timestamp with time zone': 'time', date: 'date', jsonb: 'json', 'text[]': 'list', interval: 'interval' },
  ...{ integer: 'number', bigint: 'number', 'double precision': 'number' },
};
/** Written by the server, which knows every time and digit. */
const WRITTEN: Partial<Record<Kind, (column: string) => string>> = {
  time: (column) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
  date: (column) => `to_char(${column}, 'YYYY-MM-DD')`,
  list: (column) => `to_jsonb(${column})::text`,
};

/** Stores documents and runs with every value that has broken a client, and builds the typed views. */
export async function storeWorstDocuments(setup: StoreSetup): Promise<void> {
  const feed = await setup.takeFeed();
  const times = [...HELD_TIMES, ...LOST_TIMES];
  // Most documents are usual ones, so that the columns have the types of these.
  const documents = [...Array(USUAL_DOCUMENTS).fill(USUAL), ...DOCUMENTS];
  await feed.commit(
    documents.map((data, place) => {
      const time = times[place] ?? USUAL_TIME;
      const ofRun = { submittedAt: time, completedAt: time, deliveredAt: time };
      return entryJson({ scanId: `scan-${place}`, data: { ...data, liste: [data, data] }, ...ofRun });
    }),
  );
  await feed.commit([
    entryJson({ scanId: 'scan-1', revision: 2, data: USUAL }),
    entryJson({ scanId: 'scan-2', revision: 2, status: 'odd' }),
    entryJson({ scanId: 'scan-3', revision: 2, status: 'failed', data: undefined, failureReason: 'x', error: 'x' }),
    entryJson({ scanId: 'erased' }),
  ]);
  await setup.operatorStore.deletedRuns.erase(['erased']);
  expect((await refresh(setup)).failed).toEqual([]);
  const texts = sql.lit(JSON.stringify(TEXTS));
  await setup.rows(sql`CREATE VIEW public.called_functions AS
    SELECT text, scanfeed_reporting.german_number(text) AS number, scanfeed_reporting.german_date(text) AS day
    FROM jsonb_array_elements_text(${texts}::jsonb) AS text`);
}

/** Returns what every view contains, as text from the server. */
export async function readRelations(setup: StoreSetup): Promise<readonly Relation[]> {
  const found = await setup.rows(sql<{ name: string; columns: { name: string; type: string }[] }>`
    SELECT format('%I.%I', nspname, relname) AS name,
      jsonb_agg(jsonb_build_object('name', attname, 'type', format_type(atttypid, NULL)) ORDER BY attnum) AS columns
    FROM pg_class JOIN pg_namespace AS schema ON schema.oid = relnamespace
    JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
    WHERE relkind = 'v' AND (nspname = 'scanfeed_reporting' OR relname = 'called_functions')
    GROUP BY 1 ORDER BY 1`);
  const relations: Relation[] = [];
  for (const { name, columns: typed } of found) {
    const columns = typed.map((column) => ({ name: column.name, kind: KINDS[column.type] ?? 'text' }));
    const cells = columns.map((column) => {
      const quoted = `"${column.name}"`;
      return WRITTEN[column.kind]?.(quoted) ?? `${quoted}::text`;
    });
    const rows = await setup.rows(
      sql<{ cells: Cell[] }>`SELECT ARRAY[${sql.raw(cells.join(', '))}] AS cells FROM ${sql.raw(name)}`,
    );
    relations.push({ name, columns, rows: rows.map((row) => row.cells) });
  }
  return relations;
}

/** Expects a client to have read the same rows. JSON is compared as this program reads it, times in milliseconds. */
export function expectSameRows(relation: Relation, read: readonly (readonly Cell[])[], context: string): void {
  expect(comparable(relation, read), `${relation.name} ${context}`).toEqual(comparable(relation, relation.rows));
}

const COMPARABLE: Readonly<Record<Kind, (text: string) => string>> = {
  time: (text) => new Date(text).toISOString(),
  json: (text) => JSON.stringify(JSON.parse(text)),
  list: (text) => JSON.stringify(JSON.parse(text)),
  number: (text) => String(Number(text)),
  // Each client writes it in a different way.
  interval: () => 'interval',
  date: (text) => text,
  text: (text) => text,
};

function comparable({ columns }: Relation, rows: readonly (readonly Cell[])[]): readonly string[] {
  return rows
    .map((row) => {
      expect(row).toHaveLength(columns.length);
      const cells = columns.map(({ name, kind }, place) => {
        const text = row[place] ?? null;
        // Grows between two reads.
        return text === null || name === 'lag_seconds' ? null : COMPARABLE[kind](text);
      });
      return JSON.stringify(cells);
    })
    .sort();
}

/** Expects the typed view to contain the values of the documents that fit their columns, and to name the others. */
export async function expectWorstValues(setup: StoreSetup): Promise<void> {
  const usual = USUAL_DOCUMENTS - 1; // without the one that has failed
  const [lost, texts, shapes] = [LOST_TIMES.length, TEXTS.length, SHAPES.length];
  const [counted] = await setup.rows(sql`
    SELECT count(am)::int AS times, count(datum)::int AS dates, count(betrag)::int AS numbers,
      count(*) FILTER (WHERE 'am' = ANY (unfit_fields))::int AS unfit_times,
      count(*) FILTER (WHERE 'datum' = ANY (unfit_fields))::int AS unfit_dates,
      count(*) FILTER (WHERE 'betrag' = ANY (unfit_fields))::int AS unfit_numbers,
      array_agg(betrag::text ORDER BY betrag) FILTER (WHERE betrag <> 1.1) AS found,
      array_agg(datum::text ORDER BY datum) FILTER (WHERE datum <> '2026-02-28') AS days
    FROM scanfeed_reporting.document_rechnung`);
  expect(counted).toEqual({
    ...{ times: usual + HELD_TIMES.length, unfit_times: lost + texts + shapes },
    ...{ dates: usual + DATES.length, unfit_dates: texts },
    ...{ numbers: usual + NUMBERS.length, unfit_numbers: texts + shapes },
    found: [
      ...['-98765432109876543210.0123456789', '0', '0.00000000000000000001', '0.10', '12345678901234567890'],
      '10000000000000000000000000',
    ],
    days: ['0001-01-01', '1582-10-10', '9999-12-31'],
  });
}
