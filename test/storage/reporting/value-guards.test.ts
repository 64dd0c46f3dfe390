import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { refreshReports } from '../../../src/storage/reporting/refresh-reports.js';
import { createStore } from '../../../src/storage/store.js';
import { entryJson } from '../../support/entries.js';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { NO_READER } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, takeFeed, testFeed } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

/** What a class such as `\d` or `lower()` means depends on these. A server knows some of them. */
const LOCALES = {
  'libc C': "LOCALE_PROVIDER libc LOCALE 'C'",
  'libc en_US': "LOCALE_PROVIDER libc LOCALE 'en_US.UTF-8'",
  ICU: "LOCALE_PROVIDER icu ICU_LOCALE 'und' LOCALE 'C'",
  'ICU, Turkish': "LOCALE_PROVIDER icu ICU_LOCALE 'tr' LOCALE 'C'",
  builtin: "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C'",
  'builtin, all of Unicode': "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'PG_UNICODE_FAST' LOCALE 'C'",
};
/** The locale is unknown to the host; the provider, or the syntax for it, to this version. */
const UNKNOWN = ['22023', '42809', '42601'];
/** Backslashes in ordinary literals mean something else there. */
const OLD_STRINGS = 'libc C, without standard_conforming_strings';

const databases = new Map<string, TestDatabase>();
beforeAll(async () => {
  const create = async (name: string, locale: string, setting?: string) => {
    const database = await createTestDatabase(undefined, locale).catch((error) => {
      if (!UNKNOWN.includes(String((error as { code?: unknown }).code))) throw error;
      console.log(`this server has no database of ${name}`);
    });
    if (database === undefined) return;
    databases.set(name, database);
    if (setting !== undefined)
      await withConnection(database.url, (client) => client.query(`ALTER DATABASE ${database.name} SET ${setting}`));
    await MIGRATED.prepare(database.url);
  };
  for (const [name, locale] of Object.entries(LOCALES)) await create(name, locale);
  const version = await withConnection(databases.get('libc C')?.url ?? '', async (client) =>
    Number((await client.query('SHOW server_version_num')).rows[0].server_version_num),
  );
  if (version < 190_000) await create(OLD_STRINGS, LOCALES['libc C'], 'standard_conforming_strings = off');
});
afterAll(async () => {
  for (const database of databases.values()) await database.drop();
});

/** Dates, times and numbers as documents write them. */
const VALUES = [
  ...['2026-12-31', '2024-02-29', '0001-01-01', '2026-12-31T23:59:59.123Z', '2026-12-31T10:00+14:59'],
  ...['31.12.2026', '1. 2. 26', '31. Dezember 2026', '1. JULI 2026', '3 JÄNNER 2026', '29.02.2023'],
  ...['1.234,56', '1 234,56 €', '-7,50', '12-', 'EUR 1\u00a0000', '\u22125', '123456789', '0,00'],
];
/** Characters that some databases count as digits, blanks or letters of the alphabet, and others do not. */
const DIGITS = ['\uff11', '\u0663', '\u09ea', '\u{1d7d8}', '\u00b2', '\u2167'];
const OTHERS = [
  ...['\u00a0', '\u2009', '\u202f', '\u3000', '\u0085', '\t', '\n', '\v'],
  ...['\u0131', '\u0130', '\u212a', 'I', '\u00c4', '\\', "'", '-', '.', '0', '9'],
];
const lookalike = fc.oneof(fc.constantFrom(...DIGITS), fc.constantFrom(...OTHERS));
const text = fc
  .tuple(fc.constantFrom(...VALUES), fc.array(fc.tuple(fc.nat(), fc.nat(1), lookalike), { maxLength: 3 }))
  .map(([value, changes]) => changes.reduce(changed, value));
/** Each value with one digit of another script, at each place. */
const WITH_A_DIGIT = VALUES.flatMap((value) =>
  [...value].flatMap((_, place) =>
    [0, 1].flatMap((replaced) => DIGITS.map((digit) => changed(value, [place, replaced, digit]))),
  ),
);

function changed(value: string, [place, replaced, character]: [number, number, string]): string {
  const characters = [...value];
  characters.splice(place % (characters.length + 1), replaced, character);
  return characters.join('');
}

/** What the functions say about each text. Fails if one of them does. */
const read = async (client: pg.Client, texts: readonly string[]) => {
  const { rows } = await client.query(
    `SELECT text, scanfeed.as_date(value)::text, scanfeed.as_timestamp(value)::text, scanfeed.as_number(value)::text,
       scanfeed_reporting.german_number(text)::text, scanfeed_reporting.german_date(text)::text,
       scanfeed.unfit_fields(ARRAY['d', 't'], ARRAY['date', 'timestamp'], ARRAY[value, value])
     FROM unnest($1::text[]) AS text, to_jsonb(text) AS value`,
    [texts],
  );
  return rows;
};

describe('functions that read values of documents', () => {
  it('never fail and say the same in every database, whatever it counts as a digit, a blank or a letter', async () => {
    const clients = [...databases].map(([name, { url }]) => [name, new pg.Client(url)] as const);
    for (const [, client] of clients) await client.connect();
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 300, size: 'max' }), async (texts) => {
          const [first, ...others] = await Promise.all(
            clients.map(async ([name, client]) => {
              const rows = await read(client, texts).catch((error) =>
                Promise.reject(new Error(name, { cause: error })),
              );
              return { name, rows };
            }),
          );
          for (const { name, rows } of others) expect(rows, `${name}, unlike ${first?.name}`).toEqual(first?.rows);
        }),
        { numRuns: cases(20, 500), examples: [[WITH_A_DIGIT]] },
      );
    } finally {
      for (const [, client] of clients) await client.end();
    }
    expect(clients.length).toBeGreaterThanOrEqual(3);
  });

  it('let a view be built and read in every database when a date has digits of another script', async () => {
    const dates = [...Array(4).fill('2026-12-31'), '\uff12026-12-31', '2026-12-3\u0661', '2026-12-31\uff11'];
    const documents = dates.map((datum, place) => ({ datum, 'b\\n': place, "c'": VALUES[place] }));
    for (const [name, { url }] of databases) {
      const database = openTestDatabase(url);
      const settings = { schema: TEST_SCHEMA, pendingRetryMs: 1, keptDays: null, monotonic: () => 0 };
      const feed = await takeFeed(createStore(database, settings), testFeed());
      await feed.commit(documents.map((data, place) => entryJson({ scanId: `${place}`, data })));
      const skipped: unknown[] = [];
      const { failed } = await refreshReports(connectStore(database, TEST_SCHEMA), NO_READER, {
        onSkipped: (document) => skipped.push(document),
      });
      await database.close();
      expect({ failed, skipped }, name).toEqual({ failed: [], skipped: [] });
      const rows = await withConnection(url, (client) =>
        client.query('SELECT datum, datum__text, b_n, c FROM scanfeed_reporting.document_rechnung'),
      );
      expect(rows.rows.filter(({ datum }) => datum !== null).length, name).toBe(4);
    }
  });
});
