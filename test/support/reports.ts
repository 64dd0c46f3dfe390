import { sql } from 'kysely';
import { beforeEach, expect, onTestFinished } from 'vitest';
import { type Refreshed, refreshReports } from '../../src/storage/reporting/refresh-reports.js';
import { entryJson } from './entries.js';
import { emptyTables, type StoreSetup, type TestFeed, tables } from './store.js';

/** A role that is nowhere: what is built is granted to nobody. */
export const NO_READER = 'scanfeed_nobody';

export function refresh({ connection }: StoreSetup): Promise<Refreshed> {
  return refreshReports(connection, NO_READER);
}

/** `name type`, of the columns of a view that come from fields. */
export async function fieldColumns(setup: StoreSetup, view: string): Promise<readonly string[]> {
  const rows = await setup.rows(sql<{ text: string }>`
    SELECT attname || ' ' || format_type(atttypid, atttypmod) AS text FROM pg_attribute
    WHERE attrelid = ${`scanfeed_reporting.${JSON.stringify(view)}`}::regclass AND attnum > (
      SELECT attnum FROM pg_attribute AS last
      WHERE last.attrelid = pg_attribute.attrelid AND last.attname = 'other_fields')
    ORDER BY attnum`);
  return rows.map(({ text }) => text);
}

/** Rows of a view by scan id (and position), with these columns as text. */
export async function readView(
  setup: StoreSetup,
  view: string,
  columns: readonly string[],
): Promise<Record<string, string | null>[]> {
  const list = sql.join(columns.map((name) => sql`${sql.ref(name)}::text AS ${sql.id(name)}`));
  return setup.rows(
    sql<
      Record<string, string | null>
    >`SELECT ${list} FROM ${sql.id('scanfeed_reporting', view)} AS "the row" ORDER BY scan_id, "the row"`,
  );
}

/** Reads every column of every typed view. */
export async function readAllViews(setup: StoreSetup): Promise<void> {
  const views = await setup.rows(sql<{ name: string }>`SELECT name FROM ${tables.reportViews}`);
  for (const { name } of views) await setup.rows(sql`SELECT * FROM ${sql.id('scanfeed_reporting', name)}`);
}

/** Keys without digits: `feld_b_a`, … */
export const named = (count: number, prefix = 'feld') =>
  Array.from({ length: count }, (_, index) =>
    [prefix, ...index.toString().padStart(3, '0')]
      .map((part) => part.replace(/\d/, (d) => 'qrstuvwxyz'.charAt(Number(d))))
      .join('_'),
  );
export const fields = (keys: readonly string[], value: unknown = 1) =>
  Object.fromEntries(keys.map((key) => [key, value]));

/** As if nothing had ever been stored or decided. */
export async function emptyReports(setup: StoreSetup): Promise<void> {
  const views = await setup.rows(sql<{ id: number; name: string }>`SELECT id, name FROM ${tables.reportViews}`);
  for (const { id, name } of views) {
    await setup.rows(sql`DROP VIEW IF EXISTS ${sql.id('scanfeed_reporting', name)} CASCADE`);
    await setup.rows(sql`DROP TABLE IF EXISTS ${sql.id('scanfeed_reporting', `stored_${id}`)}`);
  }
  const { feeds, runs, runHistory, quarantine, deletedRuns, reportColumns, reportShapes, reportViews } = tables;
  await emptyTables(setup, feeds, runs, runHistory, quarantine, deletedRuns, reportColumns, reportShapes, reportViews);
  await setup.rows(sql`UPDATE ${tables.reportProgress} SET change_seq = 0`);
}

/** Makes every document with this text one that PostgreSQL cannot search, until the test ends. */
export async function makeUnsearchable(setup: StoreSetup, text: string): Promise<void> {
  const [intact] = await setup.rows(
    sql<{ text: string }>`SELECT pg_get_functiondef('scanfeed.as_date(jsonb)'::regprocedure) AS text`,
  );
  onTestFinished(() => setup.rows(sql.raw(intact?.text ?? '')).then(() => {}));
  await setup.rows(sql`
    CREATE OR REPLACE FUNCTION scanfeed.as_date(value jsonb) RETURNS date LANGUAGE sql STABLE PARALLEL SAFE
      RETURN CASE WHEN value #>> '{}' = ${sql.lit(text)} THEN ('no date ' || (value #>> '{}'))::date END`);
}

/** A way to store documents, and the views that are built of them. Every test begins without any. */
export function useDocuments(setup: StoreSetup) {
  let feed: TestFeed;
  let number = 0;
  beforeEach(async () => {
    await emptyReports(setup);
    feed = await setup.takeFeed();
    number = 0;
  });
  return {
    feed: () => feed,
    /** Stores a document, by default of the type `rechnung`, as `scan-1`, `scan-2`, … */
    store(data: unknown, slug = 'rechnung', over: Record<string, unknown> = {}) {
      number += 1;
      return feed.commit([entryJson({ scanId: `scan-${number}`, documentType: { slug, name: slug }, data, ...over })]);
    },
    async build() {
      const done = await refresh(setup);
      expect(done.failed).toEqual([]);
      return done;
    },
    async viewNames() {
      const rows = await setup.rows(sql<{ name: string }>`SELECT name FROM ${tables.reportViews} ORDER BY id`);
      return rows.map(({ name }) => name);
    },
  };
}
