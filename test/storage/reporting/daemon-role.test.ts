import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as doctor from '../../../src/cli/commands/doctor.js';
import * as migrateCommand from '../../../src/cli/commands/migrate.js';
import type { Finding } from '../../../src/cli/doctor/finding.js';
import { type Database, openDatabase } from '../../../src/storage/connection/pool.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { refreshReports } from '../../../src/storage/reporting/refresh-reports.js';
import { setReportingTimeZone } from '../../../src/storage/reporting/time-zone.js';
import { createDeletedRuns } from '../../../src/storage/runs/deleted-runs.js';
import { requireSchema } from '../../../src/storage/schema/check-schema.js';
import { grantDaemon } from '../../../src/storage/schema/daemon-role.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { runCommand } from '../../support/command.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { connectionOf, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed } from '../../support/store.js';

const given = useDatabase();
const [OWNER, DAEMON, READER] = ['owner', 'daemon', 'reader'].map((name) => `scanfeed_${name}_${process.pid}`) as [
  string,
  string,
  string,
];
let admin: Database;
let daemon: Database;

const urlOf = (role: string) => {
  const url = new URL(given.url);
  Object.assign(url, { username: role, password: 'secret' });
  return url.href;
};
const openAs = (role: string) =>
  openDatabase({ connection: { ...connectionOf(given.url), user: role, password: 'secret' }, maxConnections: 2 });
const migrateAll = () =>
  runCommand(migrateCommand, ['migrate'], {
    env: {
      DATABASE_URL: urlOf(DAEMON),
      SCANFEED_MIGRATION_DATABASE_URL: urlOf(OWNER),
      SCANFEED_READER_ROLE: READER,
    },
  });

beforeAll(async () => {
  admin = openTestDatabase(given.url);
  await sql
    .raw(`CREATE ROLE ${OWNER} LOGIN PASSWORD 'secret'; CREATE ROLE ${DAEMON} LOGIN PASSWORD 'secret';
    CREATE ROLE ${READER} NOLOGIN; ALTER DATABASE ${given.name} OWNER TO ${OWNER};
    ALTER DEFAULT PRIVILEGES FOR ROLE ${OWNER} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC`)
    .execute(admin.sql);
  expect(await migrateAll()).toMatchObject({ exitCode: 0, err: '' });
  daemon = openAs(DAEMON);
});
afterAll(async () => {
  await daemon.close();
  await sql
    .raw(`ALTER DATABASE ${given.name} OWNER TO CURRENT_USER; DROP OWNED BY ${OWNER}, ${DAEMON}, ${READER} CASCADE;
    DROP ROLE ${OWNER}; DROP ROLE ${DAEMON}; DROP ROLE ${READER}`)
    .execute(admin.sql);
  await admin.close();
});

describe("the daemon's role on tables of another role", () => {
  it('may do everything the daemon does and nothing else when it was granted its rights', async () => {
    const settings = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
    const connection = connectStore(daemon, TEST_SCHEMA);
    const store = createStore(daemon, { ...settings, monotonic: () => performance.now() });
    await requireSchema(connection, await readMigrations()); // what the daemon looks at first
    const feed = await takeFeed(store, testFeed());
    await feed.commit([entryJson({ scanId: 'a' }), entryJson({ scanId: 'b', status: 'odd' })]);
    expect(await feed.counts([entryJson({ scanId: 'a', revision: 2 })])).toMatchObject({ updated: 1 });
    expect(await refreshReports(connection, READER)).toMatchObject({
      built: ['document_rechnung', 'document_rechnung_history'],
      failed: [],
    });
    expect(await refreshReports(connection, READER)).toMatchObject({ built: [], failed: [] });
    const { erase, purgeRuns, purgeHistory, purgeQuarantine } = createDeletedRuns(connection);
    for (const purge of [purgeRuns, purgeHistory, purgeQuarantine]) await purge(1, 10);
    await erase(['a']);
    expect(await setReportingTimeZone(connection, 'Europe/Berlin')).toBe(true);
    const denied = { sqlstate: '42501' };
    await expect(sql`DROP TABLE ${tables.runs}`.execute(daemon.sql)).rejects.toMatchObject(denied);
    await expect(sql`DELETE FROM ${tables.migrations}`.execute(daemon.sql)).rejects.toMatchObject(denied);
  });

  it('creates views that the reader can read when it builds them', async () => {
    const { rows } = await sql`
      SELECT has_table_privilege(${READER}, 'scanfeed_reporting.document_rechnung', 'SELECT') AS typed,
        has_table_privilege(${READER}, 'scanfeed_reporting.runs', 'SELECT') AS fixed`.execute(admin.sql);
    expect(rows).toEqual([{ typed: true, fixed: true }]);
    await admin.sql.transaction().execute(async (tx) => {
      await sql`SET LOCAL ROLE ${sql.id(READER)}`.execute(tx);
      await sql`SELECT * FROM scanfeed_reporting.document_rechnung`.execute(tx);
    });
    expect(await migrateAll()).toMatchObject({ exitCode: 0, err: '' });
  });

  it('creates tables of rows that the owner can erase runs from, and the reader reads only by the view', async () => {
    const connection = connectStore(daemon, TEST_SCHEMA);
    const feed = await takeFeed(
      createStore(daemon, {
        schema: TEST_SCHEMA,
        pendingRetryMs: 30_000,
        keptDays: null,
        monotonic: () => 0,
      }),
      testFeed(),
    );
    await feed.commit([entryJson({ scanId: 'stored' })]);
    await sql`UPDATE ${tables.reportViews} SET stores_rows = true WHERE name = 'document_rechnung'`.execute(daemon.sql);
    expect(await refreshReports(connection, READER)).toMatchObject({ built: ['document_rechnung'], failed: [] });
    const [stored] = (
      await sql<{
        name: string;
      }>`SELECT tablename AS name FROM pg_tables WHERE schemaname = 'scanfeed_reporting'`.execute(admin.sql)
    ).rows;
    const table = sql.id('scanfeed_reporting', stored?.name ?? '');
    expect((await sql`SELECT scan_id FROM ${table}`.execute(admin.sql)).rows).toEqual([{ scan_id: 'stored' }]);
    await expect(
      admin.sql.transaction().execute(async (tx) => {
        await sql`SET LOCAL ROLE ${sql.id(READER)}`.execute(tx);
        expect((await sql`SELECT FROM scanfeed_reporting.document_rechnung`.execute(tx)).rows).toHaveLength(1);
        await sql`SELECT FROM ${table}`.execute(tx);
      }),
    ).rejects.toMatchObject({ sqlstate: '42501' });
    const owner = openAs(OWNER);
    await createDeletedRuns(connectStore(owner, TEST_SCHEMA)).erase(['stored']);
    await owner.close();
    expect((await sql`SELECT FROM ${table}`.execute(admin.sql)).rows).toEqual([]);
  });

  it('names the statement that changes the owner, in the message and in doctor, when a view belongs to another role', async () => {
    const rotated = `scanfeed_rotated_${process.pid}`;
    await sql
      .raw(`CREATE ROLE ${rotated} LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA scanfeed TO ${rotated};
      GRANT ALL ON ALL TABLES IN SCHEMA scanfeed TO ${rotated}; GRANT ALL ON SCHEMA scanfeed_reporting TO ${rotated}`)
      .execute(admin.sql);
    const login = openAs(rotated);
    await sql`UPDATE ${tables.reportViews} SET built_as = 'older' WHERE name = 'document_rechnung'`.execute(admin.sql);
    const connection = connectStore(login, TEST_SCHEMA);
    const { failed } = await refreshReports(connection, READER);
    const statement = `ALTER VIEW scanfeed_reporting.document_rechnung OWNER TO ${rotated}`;
    expect(failed[0]).toMatchObject({
      view: 'document_rechnung',
      error: { message: `document_rechnung belongs to the role ${DAEMON}, so it cannot be changed: run ${statement}` },
    });
    const examine = async () => {
      const service = { SCANFEED_BASE_URL: 'http://127.0.0.1:9/v1', SCANFEED_API_KEY: 'key' };
      const env = { ...service, DATABASE_URL: urlOf(rotated) };
      const { out } = await runCommand(doctor, ['doctor', '--json'], { env });
      const { findings } = JSON.parse(out) as { findings: Finding[] };
      return findings.find(({ check }) => check === 'typed views');
    };
    const found = await examine();
    expect(found).toMatchObject({
      outcome: 'warning',
      message: expect.stringContaining(`document_rechnung (owner ${DAEMON})`),
      statements: expect.arrayContaining([statement]),
    });
    expect(found?.statements).toHaveLength(3);
    for (const each of found?.statements ?? []) await sql.raw(each).execute(admin.sql);
    expect((await refreshReports(connection, READER)).failed).toEqual([]);
    expect(await examine()).toMatchObject({ outcome: 'ok' });
    await login.close();
    await sql
      .raw(`REASSIGN OWNED BY ${rotated} TO ${DAEMON}; DROP OWNED BY ${rotated}; DROP ROLE ${rotated}`)
      .execute(admin.sql);
  });

  it('gets its rights when several processes start at once', async () => {
    const owner = openAs(OWNER);
    for (const right of ['DELETE ON scanfeed.runs', 'EXECUTE ON FUNCTION scanfeed.refuse_overtaken()']) {
      await sql.raw(`REVOKE ${right} FROM PUBLIC, ${DAEMON}`).execute(owner.sql);
      await Promise.all([1, 2, 3].map(() => grantDaemon(connectStore(owner, TEST_SCHEMA), DAEMON)));
    }
    await owner.close();
    const { rows } = await sql`
      SELECT has_table_privilege(${DAEMON}, 'scanfeed.runs', 'DELETE') AS deletes,
        has_function_privilege(${DAEMON}, 'scanfeed.refuse_overtaken()', 'EXECUTE') AS calls`.execute(admin.sql);
    expect(rows).toEqual([{ deletes: true, calls: true }]);
  });
});
