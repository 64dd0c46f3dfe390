import { type KyselyPlugin, sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { prepareSchema } from '../../../src/daemon/prepare-schema.js';
import type { Database } from '../../../src/storage/connection/pool.js';
import { connectStore, type StoreConnection } from '../../../src/storage/connection/store-connection.js';
import { createDeletedRuns } from '../../../src/storage/runs/deleted-runs.js';
import { inspectSchema, requireSchema } from '../../../src/storage/schema/check-schema.js';
import { lockMigrations, migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { tablesOf } from '../../../src/storage/tables/schema.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import { limitConcurrency } from '../../../src/sync/waiting/limit-concurrency.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { createTestDatabase } from '../../support/postgres/index.js';
import { dropDatabase, urlOfDatabase, withConnection } from '../../support/postgres/maintenance.js';
import { settingsWith } from '../../support/settings.js';
import {
  claimNothing,
  liveAs,
  openTestDatabase,
  TEST_SCHEMA,
  tables,
  takeFeed,
  testFeed,
} from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

type Connected = Database & { readonly connection: StoreConnection };

async function withDatabase(work: (database: Connected, url: string) => Promise<void>): Promise<void> {
  const created = await createTestDatabase();
  const database = openTestDatabase(created.url);
  try {
    await work({ ...database, connection: connectStore(database, TEST_SCHEMA) }, created.url);
  } finally {
    await database.close();
    await created.drop();
  }
}

/** Returns the connection and the number of statements that ran on it. */
function countingStatements({ db, tables }: StoreConnection) {
  let statements = 0;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      statements += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { connection: { db: db.withPlugin(plugin), tables }, statements: () => statements };
}

describe('migrations', () => {
  it('are applied once when several processes start at the same time', () =>
    withDatabase(async (database, url) => {
      const migrations = await readMigrations();
      const others = [openTestDatabase(url), openTestDatabase(url)];
      const applied = await Promise.all(
        [database, ...others].map((each) => migrate(connectStore(each, TEST_SCHEMA), migrations)),
      );
      await Promise.all(others.map((other) => other.close()));
      expect(applied.map((list) => list.length).sort()).toEqual([0, 0, migrations.length]);
      expect(await inspectSchema(database.connection, migrations)).toEqual({
        version: migrations.length,
        missing: [],
        tooNew: false,
      });
    }));

  it('wait only for those of the same schema when several schemas are migrated', () =>
    withDatabase(async (database) => {
      const migrations = await readMigrations();
      const schemas = ['locked', 'free'].map((name) => connectStore(database, name));
      const [locked, free] = schemas as [StoreConnection, StoreConnection];
      let waiting: Promise<unknown> | undefined;
      await database.sql.transaction().execute(async (tx) => {
        await lockMigrations(tx, locked.tables);
        waiting = migrate(locked, migrations);
        await untilWaiting(database.sql, 1);
        expect(await migrate(free, migrations)).toHaveLength(migrations.length);
        expect((await inspectSchema(locked, migrations)).version).toBe(0);
      });
      expect(await waiting).toHaveLength(migrations.length);
    }));

  it('wait when release 0.1.0 migrates, whatever the schema', () =>
    withDatabase(async (database) => {
      const migrations = await readMigrations();
      let waiting: Promise<unknown> | undefined;
      await database.sql.transaction().execute(async (tx) => {
        await sql`SELECT pg_advisory_xact_lock(7262173001)`.execute(tx);
        waiting = migrate(database.connection, migrations);
        await untilWaiting(database.sql, 1);
      });
      expect(await waiting).toHaveLength(migrations.length);
    }));

  it('use no more direct connections than allowed when a process prepares many schemas at once', () =>
    withDatabase(async (database, url) => {
      const migrations = await readMigrations();
      const proxy = await TcpProxy.to(url);
      const { signal } = new AbortController();
      const limited = limitConcurrency(2);
      const settings = ['one', 'two', 'three', 'four'].map((schema) => {
        const direct = { SCANFEED_MIGRATION_DATABASE_URL: proxy.urlOf(url) };
        return settingsWith({ DATABASE_URL: url, SCANFEED_DATABASE_SCHEMA: schema, ...direct }).database;
      });
      let prepared: Promise<unknown> | undefined;
      await database.sql.transaction().execute(async (tx) => {
        for (const { schema } of settings) await lockMigrations(tx, tablesOf(schema));
        prepared = Promise.all(settings.map((each) => prepareSchema(each, database, migrations, limited, signal)));
        await untilWaiting(database.sql, 2);
        expect(proxy.connections).toHaveLength(2);
      });
      const each = migrations.map(({ version, name }) => `${version} ${name}`);
      expect(await prepared).toEqual([each, each, each, each]);
      await proxy.close();
    }));

  it('change nothing when one of them fails', () =>
    withDatabase(async ({ connection }) => {
      const migrations = await readMigrations();
      const broken = { version: 9999, name: 'broken', worksFrom: 9999, text: 'SELECT 1; SELECT nonsense' };
      await expect(migrate(connection, [...migrations, broken])).rejects.toMatchObject({ kind: 'schema' });
      expect((await inspectSchema(connection, migrations)).version).toBe(0);
    }));

  it('comment on every table and column when they are applied', () =>
    withDatabase(async ({ sql: db, connection }) => {
      await migrate(connection, await readMigrations());
      const { rows } = await sql`
        SELECT c.relname, a.attname FROM pg_class c
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'scanfeed'::regnamespace AND c.relkind IN ('r', 'v')
          AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)`.execute(db);
      expect(rows).toEqual([]);
    }));
});

describe('the upgrade to leases of processes', () => {
  /** Prepares a schema of the release before, in which a process leads a feed. */
  async function followedBefore({ connection, sql: db }: Connected) {
    const migrations = await readMigrations();
    const before = migrations.filter(({ version }) => version < 4);
    await migrate(connection, before);
    await sql`INSERT INTO ${tables.feeds}
        (name, base_url, filters, cursor, lease_holder, lease_epoch, lease_renewed_at, lease_expires_at)
      VALUES ('default', ${testFeed().baseUrl}, ${JSON.stringify(testFeed().filters)}::jsonb, 'x', 'old', 7,
        clock_timestamp(), clock_timestamp() + interval '1 hour')`.execute(db);
    await sql`INSERT INTO ${tables.processes} (holder, feeds, checked_in_at, expires_at)
      VALUES ('old', 1, clock_timestamp(), clock_timestamp() + interval '1 hour')`.execute(db);
    return { before, migrations, lease: { feed: 'default', holder: 'old', epoch: 7, filtersBefore: null } };
  }

  it('fences the process that leads a feed, and lets another one continue from its position', () =>
    withDatabase(async (database) => {
      const { migrations, lease } = await followedBefore(database);
      const { connection, sql: db } = database;
      expect(await migrate(connection, migrations)).toMatchObject([{ version: 4 }, { version: 5 }, { version: 6 }]);
      const settings = { schema: TEST_SCHEMA, pendingRetryMs: 1, keptDays: null, monotonic: () => 0 };
      const store = createStore(database, settings);
      expect((await store.readFeeds(['default'])).get('default')).toMatchObject({ holder: null, epoch: 8 });
      expect((await sql`SELECT FROM ${tables.processes}`.execute(db)).rows).toEqual([]);
      const page = { from: 'x', to: 'y', batch: batchOf([]), quarantine: [], freshness: claimNothing() };
      expect(await store.commitPage({ ...page, lease })).toEqual({ kind: 'fenced' });
      expect(await store.movePosition(lease, 'x', { cursor: 'y', since: null })).toBe(false);
      const feed = await takeFeed(store, testFeed(), 'new');
      expect(feed.lease).toMatchObject({ epoch: 9, filtersBefore: null });
      expect(await feed.counts([entryJson()])).toMatchObject({ inserted: 1 });
    }));

  it('makes the release before hold instead of using the schema', () =>
    withDatabase(async (database) => {
      const { before, migrations } = await followedBefore(database);
      const { connection } = database;
      await requireSchema(connection, before);
      await migrate(connection, migrations);
      await expect(requireSchema(connection, before)).rejects.toMatchObject({
        ...{ kind: 'schema', action: 'hold', message: expect.stringContaining('is at version 6, too new') },
      });
    }));

  it('is tried again later when a report reads the tables, so that commits need not wait for the report', () =>
    withDatabase(async (database) => {
      const { migrations } = await followedBefore(database);
      const { connection, sql: db } = database;
      await db.transaction().execute(async (report) => {
        await sql`SELECT FROM ${tables.feeds}`.execute(report);
        const migrating = migrate(connection, migrations).catch((error: unknown) => error);
        await untilWaiting(db, 1);
        const committing = sql`UPDATE ${tables.feeds} SET cursor = 'committed'`.execute(db);
        expect(await migrating).toMatchObject({ kind: 'lock_timeout', action: 'retry' });
        await committing;
      });
      expect(await migrate(connection, migrations)).toMatchObject([{ version: 4 }, { version: 5 }, { version: 6 }]);
    }));

  it('waits for a commit of the process that leads a feed, and keeps it', () =>
    withDatabase(async (database) => {
      const { migrations } = await followedBefore(database);
      const { connection, sql: db } = database;
      const { migrating } = await db.transaction().execute(async (tx) => {
        await sql`UPDATE ${tables.feeds} SET cursor = 'committed' WHERE lease_epoch = 7`.execute(tx);
        const migrating = migrate(connection, migrations);
        await untilWaiting(db, 1);
        return { migrating };
      });
      await migrating;
      const { rows } = await sql`SELECT cursor, lease_epoch::int AS epoch FROM ${tables.feeds}`.execute(db);
      expect(rows).toEqual([{ cursor: 'committed', epoch: 8 }]);
    }));
});

describe('a database of another encoding than UTF8', () => {
  it.each(['LATIN1', 'SQL_ASCII'])('is refused before anything is written when it is %s', (encoding) =>
    withDatabase(async (_, url) => {
      const name = `encoding_${encoding.toLowerCase()}_${process.pid}`; // a database of the whole server
      const create = `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`;
      await withConnection(url, (client) => client.query(create));
      const database = openTestDatabase(urlOfDatabase(url, name));
      try {
        const migrations = await readMigrations();
        for (const refused of [migrate, requireSchema]) {
          const error: Error = await refused(connectStore(database, TEST_SCHEMA), migrations).then(
            () => Promise.reject(),
            (e) => e,
          );
          expect(error).toMatchObject({ kind: 'schema', action: 'hold' });
          expect(error.message).toContain(`the database "${name}" has the encoding ${encoding}`);
          expect(error.message).toContain("ENCODING 'UTF8' TEMPLATE template0");
        }
        const { rows } = await sql`SELECT FROM pg_namespace WHERE nspname LIKE 'scanfeed%'`.execute(database.sql);
        expect(rows).toEqual([]);
      } finally {
        await database.close();
        await withConnection(url, (client) => dropDatabase(client, name));
      }
    }),
  );
});

describe('an installation of which only the reports are left', () => {
  it('names the schema to drop, and is created again when that was dropped', () =>
    withDatabase(async (database, url) => {
      const { sql: db, connection } = database;
      const migrations = await readMigrations();
      const { database: settings } = settingsWith({ DATABASE_URL: url });
      const daemon = () =>
        prepareSchema(settings, database, migrations, limitConcurrency(1), new AbortController().signal);
      // Created by an administrator in advance; contains nothing of scanfeed.
      await sql`CREATE SCHEMA scanfeed_reporting`.execute(db);
      await migrate(connection, migrations);
      for (const gone of ['DROP SCHEMA scanfeed CASCADE', 'CREATE SCHEMA scanfeed']) {
        await sql.raw(gone).execute(db);
        for (const start of [
          () => migrate(connection, migrations),
          () => requireSchema(connection, migrations),
          daemon,
        ]) {
          const refusal: Error = await start().then(
            () => Promise.reject(),
            (e) => e,
          );
          expect(refusal).toMatchObject({ kind: 'schema', action: 'hold' });
          expect(refusal.message).toContain('run DROP SCHEMA "scanfeed_reporting" CASCADE,');
        }
      }
      expect((await sql`SELECT scanfeed_reporting.german_number('1,5')`.execute(db)).rows).toHaveLength(1);
      await sql`DROP SCHEMA "scanfeed_reporting" CASCADE`.execute(db);
      expect(await daemon()).toHaveLength(migrations.length);
    }));
});

describe('a schema that this release cannot use', () => {
  it('is distinguished from an outdated one, with the remedy, when it is too new', () =>
    withDatabase(async ({ sql: db, connection }) => {
      const migrations = await readMigrations();
      await expect(requireSchema(connection, migrations)).rejects.toThrow('run `scanfeed migrate`');
      await migrate(connection, migrations);
      await requireSchema(connection, migrations);
      await sql`INSERT INTO ${tables.migrations} VALUES (9998, 'additive', 1), (9999, 'later', 9999)`.execute(db);
      await expect(requireSchema(connection, migrations)).rejects.toThrow('too new');
    }));

  it('is refused with the remedy when its sequence is lower than the stored numbers', () =>
    withDatabase(async (database) => {
      const migrations = await readMigrations();
      const { sql: db, connection } = database;
      await migrate(connection, migrations);
      const store = createStore(database, {
        schema: 'scanfeed',
        pendingRetryMs: 1,
        keptDays: null,
        monotonic: () => 0,
      });
      await (await takeFeed(store, testFeed())).commit([entryJson(), entryJson({ scanId: 'scan-2' })]);
      await requireSchema(connection, migrations);
      // Like after a restore of the table without its sequence.
      await sql`ALTER SEQUENCE scanfeed.change_seq RESTART WITH 2`.execute(db);
      const refusal: Error = await requireSchema(connection, migrations).catch((error) => error);
      expect(refusal).toMatchObject({ action: 'hold' });
      const [, statement = ''] = /run (SELECT .*); see/.exec(refusal.message) ?? [];
      await sql.raw(statement).execute(db);
      await expect(requireSchema(connection, migrations)).resolves.toBeUndefined();
      await sql`ALTER SEQUENCE scanfeed.change_seq RESTART WITH 3`.execute(db);
      await expect(requireSchema(connection, migrations)).resolves.toBeUndefined();
      // Deletions draw numbers from the same sequence.
      await createDeletedRuns(connectStore(database, TEST_SCHEMA)).erase(['scan-2']);
      await sql`ALTER SEQUENCE scanfeed.change_seq RESTART WITH 3`.execute(db);
      await expect(requireSchema(connection, migrations)).rejects.toThrow('is lower than the stored numbers');
    }));

  it('is reported with its version when a newer release has removed or changed tables', () =>
    withDatabase(async ({ sql: db, connection }) => {
      const migrations = await readMigrations();
      await migrate(connection, migrations);
      await sql`DROP TABLE ${tables.changeClock} CASCADE`.execute(db);
      await expect(requireSchema(connection, migrations)).rejects.toMatchObject({ kind: 'schema', sqlstate: '42P01' });
      await sql`INSERT INTO ${tables.migrations} VALUES (9999, 'later', 9999)`.execute(db);
      await expect(requireSchema(connection, migrations)).rejects.toThrow('is at version 9999, too new');
      await sql`DROP TABLE ${tables.migrations}`.execute(db);
      await expect(requireSchema(connection, migrations)).rejects.toThrow('does not exist');
    }));
});

describe('a schema that this release can use', () => {
  it('is checked with one statement', () =>
    withDatabase(async ({ connection }) => {
      const migrations = await readMigrations();
      await migrate(connection, migrations);
      const counted = countingStatements(connection);
      await requireSchema(counted.connection, migrations);
      expect(counted.statements()).toBe(1);
    }));

  it('is used as before when a newer release added columns, tables and views', () =>
    withDatabase(async (database) => {
      const migrations = await readMigrations();
      const { sql: db, connection } = database;
      const newer = { version: 9999, name: 'newer', worksFrom: migrations.length, text: ADDITIVE };
      await migrate(connection, [...migrations, newer]);
      // The previous release, which does not have the newer migration, uses the schema.
      await expect(migrate(connection, migrations)).resolves.toEqual([]);
      await expect(requireSchema(connection, migrations)).resolves.toBeUndefined();
      const store = createStore(database, {
        schema: 'scanfeed',
        pendingRetryMs: 1,
        keptDays: null,
        monotonic: () => 0,
      });
      const feed = await takeFeed(store, testFeed());
      expect(await feed.counts([entryJson(), entryJson({ scanId: 'scan-2' }), 'null'])).toMatchObject({ inserted: 2 });
      expect(await feed.counts([entryJson({ revision: 2 })])).toMatchObject({ updated: 1 });
      const { rows } = await sql`
        SELECT revision, added, (SELECT array_agg(revision) FROM scanfeed.run_history) AS superseded
        FROM scanfeed.runs WHERE scan_id = 'scan-1'`.execute(db);
      expect(rows).toEqual([{ revision: 2, added: 'default', superseded: [1] }]);
      await liveAs(connection, feed.lease.holder);
      expect(await store.readStatus(feed.lease.feed)).toMatchObject({ leaseHolder: feed.lease.holder });
      await store.releaseLease(feed.lease);
    }));
});

/** The changes that CONTRIBUTING allows in a minor release: additions, at the same place in `runs` and `run_history`. */
const ADDITIVE = `
  ALTER TABLE :"schema".runs ADD COLUMN added text NOT NULL DEFAULT 'default';
  ALTER TABLE :"schema".run_history ADD COLUMN added text NOT NULL DEFAULT 'default';
  ALTER TABLE :"schema".feeds ADD COLUMN added integer NOT NULL DEFAULT 0;
  ALTER TABLE :"schema".quarantine ADD COLUMN added jsonb;
  CREATE TABLE :"schema".added (feed text PRIMARY KEY);
  CREATE INDEX runs_added ON :"schema".runs (added);
  CREATE VIEW :"reporting".added AS SELECT scan_id, added FROM :"schema".runs`;
