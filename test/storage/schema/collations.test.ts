import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createStoredIndex } from '../../../src/storage/reporting/stored-indexes.js';
import { readReportViews } from '../../../src/storage/reporting/stored-views.js';
import { createStore } from '../../../src/storage/store.js';
import { entryJson } from '../../support/entries.js';
import { createTestDatabase } from '../../support/postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { refresh } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const setup = useStore();

/** Columns that people read and search: they keep the collation of the database, for ILIKE and their language's order. */
const FOR_PEOPLE = new Set([
  ...['runs', 'run_history'].flatMap((table) =>
    ['document_type_name', 'file_name', 'partner_name', 'error', 'markdown'].map((column) => `${table}.${column}`),
  ),
  'recent_errors.message',
  'quarantine.detail',
]);

it('every text that identifies something is compared byte by byte', async () => {
  const columns = await setup.rows(sql<{ name: string }>`
    SELECT relname || '.' || attname AS name FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'scanfeed'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
      AND attcollation NOT IN (0, '"C"'::regcollation)`);
  expect(new Set(columns.map(({ name }) => name))).toEqual(FOR_PEOPLE);
});

it('no index depends on the languages of the host, also of stored rows', async () => {
  await (await setup.takeFeed()).commit([entryJson({ data: { nummer: 'RE-1' } })]);
  await refresh(setup);
  await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE history_of IS NULL`);
  await refresh(setup);
  const view = (await readReportViews(setup.connection)).find(({ name }) => name === 'document_rechnung');
  const indexed = ['nummer', 'partner_name', 'unfit_fields', 'completed_at'];
  if (view !== undefined) await createStoredIndex(setup.connection, view, indexed);
  const keys = await setup.rows(sql<{ index: string; ordered: string }>`
    SELECT indexrelid::regclass::text AS index, opcname || ' ' || COALESCE(collname, '-') AS ordered
    FROM pg_index JOIN pg_class AS class ON class.oid = indrelid
    JOIN unnest(indcollation::oid[], indclass::oid[]) AS key (compared, operators) ON true
    JOIN pg_opclass ON pg_opclass.oid = operators LEFT JOIN pg_collation ON pg_collation.oid = compared
    WHERE relnamespace IN ('scanfeed'::regnamespace, 'scanfeed_reporting'::regnamespace)`);
  expect(keys.some(({ index }) => index.includes('nummer_partner_name'))).toBe(true);
  expect(keys.filter(({ ordered }) => !/^(text_pattern_ops \S+|\S+ [C-])$/.test(ordered))).toEqual([]);
});

it('a correction finds its run when the order of the host has changed', async () => {
  const created = await createTestDatabase(
    undefined,
    "LOCALE_PROVIDER icu ICU_LOCALE 'und' LC_COLLATE 'C' LC_CTYPE 'C'",
  );
  const commit = async (revision: number) => {
    const database = openTestDatabase(created.url);
    const settings = { schema: TEST_SCHEMA, pendingRetryMs: 1, keptDays: null, monotonic: () => 0 };
    const feed = await takeFeed(createStore(database, settings), testFeed(), `test-${revision}`);
    try {
      return (await feed.counts(MIXED_CASE.map((scanId) => entryJson({ scanId, revision })))).updated;
    } finally {
      await database.close();
    }
  };
  await MIGRATED.prepare(created.url);
  expect(await commit(1)).toBe(0);
  await withConnection(created.url, async (client) => {
    const { rows } = await client.query(`SELECT attname FROM pg_attribute
      WHERE attrelid = 'pg_database'::regclass AND attname IN ('datlocale', 'daticulocale')`);
    // As if the host had got another library: the indexes are sorted by the old one.
    await client.query(
      `UPDATE pg_database SET ${rows[0].attname} = 'und-u-kf-upper-kn' WHERE datname = current_database()`,
    );
  });
  expect(await commit(2)).toBe(MIXED_CASE.length);
  await created.drop();
});
/** Scan ids that languages sort in different orders. */
const MIXED_CASE = Array.from(
  { length: 400 },
  (_, number) => `${number % 2 ? 'Scan' : 'scan'}-${(number * 7919) % 1_009}`,
);
