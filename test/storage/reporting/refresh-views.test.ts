import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { buildViews } from '../../../src/storage/reporting/build-views.js';
import { countNewChanges, findNewFields, type SkippedDocument } from '../../../src/storage/reporting/new-documents.js';
import { refreshReports } from '../../../src/storage/reporting/refresh-reports.js';
import { countUnfitValues } from '../../../src/storage/reporting/unfit-values.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import {
  fieldColumns,
  fields,
  makeUnsearchable,
  NO_READER,
  named,
  readAllViews,
  readView,
  refresh,
  useDocuments,
} from '../../support/reports.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const { store, build, viewNames } = useDocuments(setup);

describe('a refresh', () => {
  it('searches each change once, and again when requested', async () => {
    await store({ a: 1 });
    expect(await countNewChanges(setup.connection)).toBeGreaterThan(0);
    await build();
    expect(await countNewChanges(setup.connection)).toBe(0);
    await setup.rows(sql`UPDATE ${tables.runs} SET data = '{"b": 1}'`); // unnoticed: not by the daemon
    expect(await build()).toMatchObject({ columns: 0 });
    await setup.rows(sql`UPDATE ${tables.reportProgress} SET change_seq = 0`);
    expect(await build()).toMatchObject({ columns: 1 });
  });

  it('skips and names a document when PostgreSQL cannot search it, and searches the others', async () => {
    await makeUnsearchable(setup, '2026-13-13');
    const feed = await setup.takeFeed();
    const documents = Array.from({ length: 400 }, (_, n) => ({ [`field_${Math.floor(n / 50)}`]: n }));
    Object.assign(documents[237] ?? {}, { field_4: '2026-13-13' });
    await feed.commit(documents.map((data, n) => entryJson({ scanId: `scan-${n}`, data })));
    const skipped: SkippedDocument[] = [];
    const search = () =>
      refreshReports(setup.connection, NO_READER, { onSkipped: (document) => skipped.push(document) });
    await search();
    // A wide document is compared with the latest ones of its type, of which this one is still unsearchable.
    await setup.rows(sql`UPDATE ${tables.runs} SET completed_at = 'tomorrow' WHERE scan_id = 'scan-237'`);
    await feed.commit([entryJson({ scanId: 'wide', data: fields(named(400)) })]);
    await search();
    expect(skipped).toMatchObject([{ scanId: 'scan-237', error: { sqlstate: '22007' } }]);
    const columns = await fieldColumns(setup, 'document_rechnung');
    expect(columns.slice(0, 8)).toEqual(Array.from({ length: 8 }, (_, n) => `field_${n} numeric`));
    expect(columns.length).toBe(400);
    expect(await countNewChanges(setup.connection)).toBe(0);
  });

  it('compiles no statement over documents', async () => {
    await setup.rows(sql`CREATE SEQUENCE public.searched`);
    const [intact] = await setup.rows(
      sql<{ text: string }>`SELECT pg_get_functiondef('scanfeed.as_date(jsonb)'::regprocedure) AS text`,
    );
    await setup.rows(sql`
      CREATE OR REPLACE FUNCTION scanfeed.as_date(value jsonb) RETURNS date LANGUAGE plpgsql STABLE AS $$ BEGIN
        ASSERT current_setting('jit') = 'off';
        PERFORM nextval('public.searched');
        RETURN '2026-01-01';
      END $$`);
    await store({ datum: '2026-01-01' });
    await setup.rows(sql`SELECT setval('public.searched', 1)`);
    expect(await build()).toMatchObject({ failed: [] });
    await setup.rows(sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE name = 'document_rechnung'`);
    expect(await build()).toMatchObject({ failed: [] });
    expect(await countUnfitValues(setup.connection)).toEqual([]);
    await setup.rows(sql.raw(intact?.text ?? ''));
    const [searched] = await setup.rows(sql<{ times: number }>`SELECT last_value::int AS times FROM public.searched`);
    expect(searched?.times).toBeGreaterThan(2);
  });

  it('neither waits for nor blocks a report when that reads the view', async () => {
    await store({ a: 1 });
    await build();
    await store({ a: 1, b: 2 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (report) => {
      await sql`SELECT * FROM scanfeed_reporting.document_rechnung`.execute(report);
      const { failed, columns } = await refresh(setup);
      expect(columns).toBe(1);
      expect(failed).toMatchObject([{ view: 'document_rechnung', error: { kind: 'lock_timeout' } }]);
      expect(await readView(setup, 'document_rechnung', ['a'])).toHaveLength(2);
    });
    await other.close();
    expect(await build()).toMatchObject({ columns: 0, built: ['document_rechnung'] });
    expect(await fieldColumns(setup, 'document_rechnung')).toEqual(['a numeric', 'b numeric']);
  });

  it('waits for nothing and blocks no commit when another one is running', async () => {
    await store({ a: 1 });
    const other = openTestDatabase(given.url);
    await other.sql.transaction().execute(async (refreshing) => {
      await sql`SELECT FROM ${tables.reportProgress} FOR UPDATE`.execute(refreshing);
      await sql`SELECT FROM ${tables.runs}`.execute(refreshing);
      expect(await refresh(setup)).toMatchObject({ busy: true, views: 0 });
      expect(await store({ a: 2 })).toMatchObject({ kind: 'committed' });
    });
    await other.close();
    expect(await build()).toMatchObject({ busy: false, views: 2 });
  });

  it('creates each view once when several run at the same time', async () => {
    for (const slug of ['a', 'b', 'c', 'd']) await store({ x: 1, y: [{ z: 1 }] }, slug);
    const done = await Promise.all([1, 2, 3, 4].map(() => refresh(setup)));
    await build();
    expect(done.flatMap(({ failed }) => failed)).toEqual([]);
    expect(await viewNames()).toHaveLength(12);
    await readAllViews(setup);
  });

  it('keeps a newer definition when another process has built it', async () => {
    await store({ a: 1 });
    await findNewFields(setup.connection);
    const late = openTestDatabase(given.url, 1);
    let building: ReturnType<typeof buildViews> | undefined;
    await setup.database.sql.transaction().execute(async (other) => {
      // The slower one has read the views, and waits to read the shapes of values, on which their definitions depend too.
      await sql`LOCK TABLE ${tables.reportShapes} IN ACCESS EXCLUSIVE MODE`.execute(other);
      building = buildViews(connectStore(late, TEST_SCHEMA), NO_READER);
      await untilWaiting(setup.database.sql, 1);
      await sql`UPDATE ${tables.reportViews} SET built_as = 'newer'`.execute(other);
    });
    expect(await building).toMatchObject({ built: [], failed: [] });
    await late.close();
    expect(await build()).toMatchObject({ built: ['document_rechnung', 'document_rechnung_history'] });
  });

  it('builds the other views when one cannot be built', async () => {
    await setup.rows(sql`CREATE TABLE scanfeed_reporting.document_b ()`);
    await store({ x: 1 }, 'a');
    await build();
    await setup.rows(sql`DROP VIEW scanfeed_reporting.document_a; CREATE TABLE scanfeed_reporting.document_a ()`);
    await store({ x: 1 }, 'b');
    expect(await refresh(setup)).toMatchObject({
      built: ['document_b_2', 'document_b_history'],
      failed: [{ view: 'document_a' }],
    });
    await setup.rows(sql`DROP TABLE scanfeed_reporting.document_a; DROP TABLE scanfeed_reporting.document_b`);
    expect(await build()).toMatchObject({ built: ['document_a'] });
  });
});
