import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { ServiceClient } from '../../../src/service/client.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { notifyChanges } from '../../../src/storage/reporting/notify-changes.js';
import { refreshReports } from '../../../src/storage/reporting/refresh-reports.js';
import { createDeletedRuns } from '../../../src/storage/runs/deleted-runs.js';
import { inspectSchema } from '../../../src/storage/schema/check-schema.js';
import { migrate } from '../../../src/storage/schema/migrate.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { createStore } from '../../../src/storage/store.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { disruptAfterCommits } from '../../support/disrupt-after-commits.js';
import { engineContext, processLease, silentObserver } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { type FollowOptions, followToTheEnd } from '../../support/follow-to-the-end.js';
import { useChangeListener } from '../../support/notifications.js';
import { type OracleFeed, startOracleFeed } from '../../support/oracle-feed.js';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../../support/pgbouncer.js';
import { useDatabase } from '../../support/postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { smallFeed } from '../../support/small-feed.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, useStore } from '../../support/store.js';
import { watchUncaught } from '../../support/uncaught.js';
import { seededRandom } from '../../support/virtual-clock.js';

const POOL_SIZE = 2;
const program = findPgBouncer();
if (program === null) console.warn('The PgBouncer tests are skipped because the program pgbouncer is not installed');

it.runIf(process.env.CI === 'true')('finds the program pgbouncer when all checks run', () => {
  expect(program).not.toBeNull();
});

const uncaught = watchUncaught();
afterEach(() => expect(uncaught).toEqual([]));

/** Runs PgBouncer in front of a database during the tests. */
function useBouncer(provided: { readonly url: string }) {
  let bouncer: PgBouncer | undefined;
  const started = () => {
    if (bouncer === undefined) throw new Error('PgBouncer runs only within tests and hooks');
    return bouncer;
  };
  beforeAll(async () => {
    bouncer = await startPgBouncer(program ?? '', provided.url, POOL_SIZE);
  });
  afterAll(() => bouncer?.stop());
  return {
    get url() {
      return started().url;
    },
    kill: () => started().kill(),
    restart: () => started().restart(),
  };
}

describe.skipIf(program === null)('PgBouncer in transaction mode', () => {
  describe('migrating an empty database', () => {
    const bouncer = useBouncer(useDatabase());

    it('applies each migration once when three processes start on a smaller pool', async () => {
      const migrations = await readMigrations();
      const databases = [1, 2, 3].map(() => openTestDatabase(bouncer.url));
      const connections = databases.map((database) => connectStore(database, TEST_SCHEMA));
      const applied = await Promise.all(connections.map((connection) => migrate(connection, migrations)));
      expect(applied.map((list) => list.length).sort()).toEqual([0, 0, migrations.length]);
      const [connection] = connections;
      expect(connection && (await inspectSchema(connection, migrations)).missing).toEqual([]);
      await Promise.all(databases.map((each) => each.close()));
    });
  });

  describe('typed views of documents', () => {
    const provided = useDatabase(MIGRATED);
    const bouncer = useBouncer(provided);
    const setup = useStore(provided);

    it('are built, and lose the rows of a run, when documents are stored and the run is erased', async () => {
      await (await setup.takeFeed()).commit([entryJson({ scanId: 'a', data: { betrag: 1, posten: [{ menge: 2 }] } })]);
      const database = openTestDatabase(bouncer.url);
      const connection = connectStore(database, TEST_SCHEMA);
      const done = await Promise.all([1, 2, 3].map(() => refreshReports(connection, 'scanfeed_nobody')));
      // Concurrent refreshes may each build the views: building them twice changes nothing.
      const built = new Set(done.flatMap((each) => each.built));
      expect([...built].sort()).toEqual(['document_rechnung', 'document_rechnung_history', 'document_rechnung_posten']);
      const erased = await createDeletedRuns(connection).erase(['a']);
      expect(erased).toMatchObject([{ scanId: 'a', stored: true }]);
      await database.close();
      expect(await setup.rows(sql`SELECT FROM scanfeed_reporting.document_rechnung`)).toEqual([]);
    });
  });

  describe('a listener with a direct connection', () => {
    const provided = useDatabase(MIGRATED);
    const setup = useStore(useBouncer(provided));
    const listener = useChangeListener(provided);

    it('hears one notification through PgBouncer after a page is committed, and none when it is delivered again', async () => {
      const feed = await setup.takeFeed();
      const page = ['a', 'b'].map((scanId) => entryJson({ scanId }));
      await feed.commit(page);
      const last = await notifyChanges(setup.connection, null);
      expect(await listener.sent()).toEqual(['']);
      await feed.commit(page);
      expect(await notifyChanges(setup.connection, last)).toBe(last);
      expect(await listener.sent()).toEqual([]);
    });
  });

  describe('a feed of 2,000 runs', () => {
    const provided = useDatabase(MIGRATED);
    const bouncer = useBouncer(provided);
    const setup = useStore(provided);
    let feed: OracleFeed;
    let client: ServiceClient;
    beforeEach(async () => {
      await setup.rows(sql`TRUNCATE ${tables.runs}, ${tables.feeds}, ${tables.runHistory}`);
      feed = await startOracleFeed();
      client = new ServiceClient({ baseUrl: feed.emulator.url, apiKey: feed.emulator.apiKey });
    });
    afterEach(async () => {
      await client.close();
      await feed.emulator.close();
    });
    const follow = (over: Partial<FollowOptions> = {}) =>
      followToTheEnd({
        url: bouncer.url,
        feed: 'default',
        service: client,
        context: { pageSize: 50 },
        database: { maxConnections: 5 },
        ...over,
      });

    it('is stored as the oracle expects, and leaves no state in shared sessions, when nothing fails', async () => {
      const before = await sessions(bouncer.url);
      const { failures } = await follow();
      expect(failures).toEqual([]);
      await feed.expectStored(setup);
      const after = await sessions(bouncer.url);
      expect(after).toEqual(before);
      expect(after.flatMap(({ prepared, locks, temporary }) => [prepared, locks, temporary])).toEqual(
        Array.from({ length: 3 * POOL_SIZE }, () => 0),
      );
      const open = await setup.rows(sql`
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
          AND backend_type = 'client backend'`);
      expect(open).toEqual([]);
    });

    it('is stored as the oracle expects when PgBouncer is killed and restarted', async () => {
      let kills = 0;
      const disruption = disruptAfterCommits(async () => {
        if (kills === 5) return;
        kills += 1;
        await bouncer.kill();
        await bouncer.restart();
      });
      const { failures } = await follow({ onCommitted: disruption.onCommitted });
      await disruption.settled();
      expect(kills).toBe(5);
      expect(failures.length).toBeGreaterThan(0);
      await feed.expectStored(setup);
    });

    it('is stored as the oracle expects when the server terminates the sessions of the pool repeatedly', async () => {
      const random = seededRandom(7);
      let ended = 0;
      const disruption = disruptAfterCommits(() =>
        withConnection(provided.url, async (connection) => {
          await sleep(random() * 20);
          const { rowCount } = await connection.query(`
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()`);
          ended += rowCount ?? 0;
        }),
      );
      const { failures } = await follow({ onCommitted: disruption.onCommitted });
      await disruption.settled();
      console.info(`${ended} sessions of PgBouncer terminated, ${failures.length} failures, all 2,000 runs stored`);
      expect(ended).toBeGreaterThan(5);
      await feed.expectStored(setup);
    });
  });

  describe('the standby of two replicas', () => {
    const provided = useDatabase(MIGRATED);
    const bouncer = useBouncer(provided);
    const setup = useStore(provided);

    it('takes over when the leader releases its lease', async () => {
      const a = replica('a', bouncer.url);
      await a.leads;
      const b = replica('b', bouncer.url);
      await b.standsBy;
      expect((await setup.store.readStatus('shared')).leaseHolder).toBe('a');
      await a.stop();
      await b.leads;
      expect((await setup.store.readStatus('shared')).leaseHolder).toBe('b');
      await b.reachesEnd;
      await b.stop();
      expect((await setup.store.readStatus('shared')).leaseHolder).toBeNull();
    });

    it('takes over, and the former leader cannot renew its lease, when the leader stops responding', async () => {
      const silent = await setup.store.acquireLease(
        { ...engineContext(partsOf(bouncer.url).parts).settings.identity, name: 'silent' },
        'silent',
      );
      const b = replica('b', bouncer.url, 'silent');
      await b.leads;
      expect(silent && (await setup.isHeld(silent))).toBe(false);
      await b.reachesEnd;
      await b.stop();
    });
  });
});

function partsOf(url: string) {
  const database = openTestDatabase(url);
  const settings = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
  const store = createStore(database, { ...settings, monotonic: systemClock.monotonic });
  const processes = createProcesses(connectStore(database, TEST_SCHEMA));
  return { database, processes, parts: { service: smallFeed('shared').service, store, clock: systemClock } };
}

/** Starts a replica of a feed. The promises resolve with its events. */
function replica(holder: string, url: string, feed = 'shared') {
  const { database, processes, parts } = partsOf(url);
  const process = processLease({ clock: systemClock, store: processes, holder, ttlMs: 1_000 });
  const stop = new AbortController();
  const events = new Map<string, () => void>();
  const event = (name: string) => new Promise<void>((resolve) => void events.set(name, resolve));
  const [leads, standsBy, reachesEnd] = [event('leads'), event('standsBy'), event('reachesEnd')];
  const leaving = new AbortController();
  const kept = process.keep(leaving.signal);
  const following = syncFeed(
    engineContext({
      ...{ ...parts, process, pollIntervalMs: 50, identity: { name: feed } },
      observer: silentObserver({
        leading: (until) => until !== null && events.get('leads')?.(),
        status: ({ leaseHolder }) => leaseHolder !== holder && events.get('standsBy')?.(),
        polled: (outcome) => outcome === 'end' && events.get('reachesEnd')?.(),
      }),
    }),
    stop.signal,
  );
  return {
    leads,
    standsBy,
    reachesEnd,
    stop: async () => {
      stop.abort();
      await following;
      leaving.abort();
      await kept;
      await database.close();
    },
  };
}

/** Returns the state of each server session of PgBouncer, as its clients see it. */
async function sessions(url: string) {
  const clients = Array.from({ length: POOL_SIZE }, () => new pg.Client({ connectionString: url }));
  await Promise.all(clients.map((client) => client.connect()));
  // Concurrent transactions use different sessions.
  for (const client of clients) await client.query('BEGIN');
  const found = await Promise.all(
    clients.map(async (client) => {
      const { rows } = await client.query<{
        settings: string;
        prepared: number;
        locks: number;
        temporary: number;
      }>(`
        SELECT (SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings WHERE source = 'session') AS settings,
          (SELECT count(*)::int FROM pg_prepared_statements) AS prepared,
          (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
          (SELECT count(*)::int FROM pg_class WHERE relpersistence = 't' AND pg_table_is_visible(oid)) AS temporary`);
      return rows[0] as (typeof rows)[number];
    }),
  );
  for (const client of clients) await client.query('COMMIT');
  await Promise.all(clients.map((client) => client.end()));
  return found;
}
