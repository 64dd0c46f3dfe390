import { sql } from 'kysely';
import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import { entryJson, raw } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { refresh, useDocuments } from '../../support/reports.js';
import { MIGRATED, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const { feed, store } = useDocuments(setup);

const TEXTS = [
  ...['1.234,56', '1 234 €', '-7,50', '1.234', '0,19', '2026-12-31', '31.12.2026', '1. März 26', '3 JÄNNER 2026'],
  ...['2026-12-31T23:59:59.5Z', '2026-12-31T10:00:00+05:30', '01.02.2026', '2026-02-01', 'a\\d\\\\n', "'", '\\', ''],
];
const VALUES = [...TEXTS, raw('1.10'), raw('12345678901234567890.123'), true, null, ['a', raw('1')], { a: { b: 'x' } }];
const DOCUMENT = {
  betrag: raw('1.10'),
  datum: '2026-02-01',
  gelesen: '2026-02-28T23:30:00+01:00',
  name: 'Müller \\d',
  'a\\"b\'': 'x',
  bezahlt: true,
  tags: ['a', raw('1.5')],
  lieferant: { anschrift: { ort: 'Ulm' } },
  positionen: [{ menge: raw('2.000'), chargen: [{ nr: 'a', am: '2026-01-31' }] }, { menge: '1,5' }, 'x'],
};
/** Everything that the functions and views call could be found there first. */
const EVIL = [
  'length(text) RETURNS int RETURN 1000',
  'left(text, int) RETURNS text RETURN NULL::text',
  'lower(text) RETURNS text RETURN NULL::text',
  'btrim(text, text) RETURNS text RETURN NULL::text',
  'replace(text, text, text) RETURNS text RETURN NULL::text',
  'translate(text, text, text) RETURNS text RETURN NULL::text',
  'strpos(text, text) RETURNS int RETURN 0',
  'regexp_match(text, text) RETURNS text[] RETURN NULL::text[]',
  'regexp_replace(text, text, text, text) RETURNS text RETURN NULL::text',
  'make_date(int, int, int) RETURNS date RETURN NULL::date',
  'jsonb_typeof(jsonb) RETURNS text RETURN NULL::text',
  'as_number(jsonb) RETURNS numeric RETURN NULL::numeric',
  'no_match(text, text) RETURNS boolean RETURN false',
  'every_match(text, text) RETURNS boolean RETURN true',
];
const HOSTILE: readonly (readonly string[])[] = [
  [`standard_conforming_strings = off`, `escape_string_warning = on`, `backslash_quote = on`],
  [`DateStyle = 'German, DMY'`],
  [`DateStyle = 'SQL, DMY'`],
  [`DateStyle = 'Postgres, MDY'`],
  [`IntervalStyle = 'sql_standard'`],
  [`extra_float_digits = -15`],
  [`TimeZone = 'Pacific/Kiritimati'`],
  [`TimeZone = 'America/St_Johns'`],
  [`lc_numeric = 'de_DE.UTF-8'`, `lc_time = 'de_DE.UTF-8'`, `lc_monetary = 'de_DE.UTF-8'`],
  [`search_path = evil, pg_catalog`],
  [`search_path = ''`],
  [`bytea_output = 'escape'`],
  [`transform_null_equals = on`, `array_nulls = off`, `quote_all_identifiers = on`, `check_function_bodies = off`],
  [`client_encoding = 'LATIN1'`],
  [`default_transaction_isolation = 'serializable'`, `row_security = off`, `xmloption = 'document'`],
  [`plpgsql.variable_conflict = 'use_column'`, `plpgsql.extra_errors = 'all'`],
  [`jit = on`, `jit_above_cost = 0`, `enable_hashagg = off`, `enable_seqscan = off`, `work_mem = '64kB'`],
];
/** A setting that a server may not know: a locale, or standard_conforming_strings = off from PostgreSQL 19. */
const UNKNOWN = ['22023', '0A000'];

beforeAll(async () => {
  await setup.rows(sql`CREATE SCHEMA evil`);
  for (const each of EVIL) await setup.rows(sql.raw(`CREATE FUNCTION evil.${each}`) as never);
  await setup.rows(sql`CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no_match)`);
  await setup.rows(sql`CREATE OPERATOR evil.!~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.every_match)`);
  await setup.rows(sql`CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no_match)`);
  await setup.rows(sql`CREATE TABLE public.sample (value jsonb)`);
  const values = VALUES.map((value) => entryJson({ data: value }).replace(/^.*"data":(.*),"submittedAt".*$/s, '$1'));
  await setup.rows(sql`INSERT INTO public.sample SELECT unnest(${values}::jsonb[])`);
});

/** What each function is called with. */
const CALLS: Readonly<Record<string, string>> = {
  text: `(value #>> '{}') FROM public.sample`,
  jsonb: '(value) FROM public.sample',
  'date, text': `(date '2026-03-29' + number, 'Europe/Berlin') FROM generate_series(0, 250) AS number`,
  'text[], text[], jsonb[]': `(ARRAY['n', 'b', 'd', 't', 'x', 'y z'], ARRAY['number', 'boolean', 'date', 'timestamp', 'text', 'object'],
    array_fill(value, ARRAY[6])) FROM public.sample`,
  'jsonb, jsonb': `(value, '{"a": {"fields": {"c": {"kinds": ["string"]}}}}') FROM public.sample`,
};

/** Statements that read every function and view, by their name. */
async function everything(): Promise<ReadonlyMap<string, string>> {
  const found = await setup.rows(sql<{ name: string; arguments: string | null }>`
    SELECT format('%I.%I', nspname, relname) AS name, NULL AS arguments
    FROM pg_class JOIN pg_namespace AS schema ON schema.oid = relnamespace
    WHERE nspname IN (${tables.schema}, ${tables.reportingSchema}) AND relkind = 'v'
    UNION ALL
    SELECT format('%I.%I', nspname, proname), pg_get_function_identity_arguments(function.oid)
    FROM pg_proc AS function JOIN pg_namespace AS schema ON schema.oid = pronamespace
    WHERE nspname IN (${tables.schema}, ${tables.reportingSchema}) AND provolatile <> 'v'`);
  return new Map(
    found.map(({ name, arguments: given }) => {
      if (given === null) return [name, `SELECT * FROM ${name}`];
      const types = given.replaceAll(/\w+ (?=\w+(\[\])?(,|$))/g, '');
      expect(Object.keys(CALLS), `a sample for ${name}`).toContain(types);
      return [name, `SELECT ${name}${CALLS[types]}`];
    }),
  );
}

/** Reads everything in a session with these settings. What it has read is then written with those of every session. */
async function readIn(settings: readonly string[], statements: ReadonlyMap<string, string>) {
  const client = new pg.Client(given.url);
  await client.connect();
  try {
    const known: string[] = [];
    for (const setting of settings) {
      const error = await client.query(`SET ${setting}`).catch((failure) => failure);
      if (!(error instanceof Error)) known.push(setting);
      else if (!UNKNOWN.includes(String((error as { code?: unknown }).code))) throw error;
    }
    let number = 0;
    for (const [name, statement] of statements) {
      number += 1;
      await client.query(`CREATE TEMP TABLE read_${number} AS ${statement}`).catch((error) => {
        throw new Error(`${name} with ${settings.join()}`, { cause: error });
      });
    }
    for (const setting of known) await client.query(`RESET ${setting.split(' ')[0]}`);
    const results = new Map<string, unknown>();
    for (const [place, name] of [...statements.keys()].entries()) {
      const { rows } = await client.query(
        `SELECT (to_jsonb(row) - 'lag_seconds')::text AS text FROM pg_temp.read_${place + 1} AS row ORDER BY 1`,
      );
      results.set(
        name,
        rows.map(({ text }) => text),
      );
    }
    return { known, results };
  } finally {
    await client.end();
  }
}

it('every function and view says the same in a session with any settings', async () => {
  await store(DOCUMENT);
  await store({
    ...DOCUMENT,
    betrag: '1.234,56',
    datum: '01.02.2026',
    positionen: { menge: raw('5') },
    lieferant: 'x',
  });
  await store({ betrag: raw('2.5'), neu: 1 }, 'lieferschein');
  // So that one shape is an exception.
  const shapes = [{ n: { m: 1 } }, ...Array(40).fill({ n: 1 })];
  await feed().commit(
    shapes.map((data, place) =>
      entryJson({ scanId: `shape-${place}`, documentType: { slug: 'lieferschein x', name: 'x' }, data }),
    ),
  );
  await store(undefined, 'rechnung', { status: 'failed', failureReason: 'x', error: 'Nicht lesbar \\d' });
  await feed().commit([
    entryJson({ scanId: 'scan-1', revision: 2, data: DOCUMENT }),
    entryJson({ scanId: 'q', status: '?' }),
  ]);
  await refresh(setup);
  await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE name = 'document_lieferschein'`);
  await refresh(setup);
  await store({ ...DOCUMENT, spaeter: '2026-02-01' });
  await feed().commit([entryJson({ scanId: 'erased' })]);
  await setup.operatorStore.deletedRuns.erase(['erased']);
  const statements = await everything();
  expect(statements.size).toBeGreaterThan(25);
  const { results: usual } = await readIn([], statements);
  for (const [name, rows] of usual) if (!name.includes('lieferschein')) expect(rows, name).not.toEqual([]);
  let hostile = 0;
  for (const settings of [...HOSTILE, HOSTILE.flat()]) {
    const { known, results } = await readIn(settings, statements);
    hostile += known.length === 0 ? 0 : 1;
    for (const [name, rows] of results) expect(rows, `${name} with ${settings.join()}`).toEqual(usual.get(name));
  }
  expect(hostile).toBeGreaterThanOrEqual(12);
});
