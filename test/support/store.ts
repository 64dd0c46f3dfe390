import { type RawBuilder, sql } from 'kysely';
import pgConnection from 'pg-connection-string';
import { afterAll, beforeAll } from 'vitest';
import type { CommitCounts } from '../../src/core/counts.js';
import type { ServerSettings } from '../../src/demo/embedded-postgres/server.js';
import type { ClientOptions } from '../../src/storage/connection/client.js';
import { type Database, openDatabase } from '../../src/storage/connection/pool.js';
import { connectStore, type StoreConnection } from '../../src/storage/connection/store-connection.js';
import { createProcesses } from '../../src/storage/feeds/processes.js';
import { createOperatorStore, type OperatorStore } from '../../src/storage/operator/operator-store.js';
import { migrate } from '../../src/storage/schema/migrate.js';
import { readMigrations } from '../../src/storage/schema/read-migrations.js';
import { createStore } from '../../src/storage/store.js';
import { tablesOf } from '../../src/storage/tables/schema.js';
import { batchOf, checkEntries } from '../../src/sync/page/check-entries.js';
import type {
  CommitOutcome,
  FeedIdentity,
  FeedStore,
  FreshnessClaim,
  LeaseGrant,
  PageCommit,
} from '../../src/sync/ports/index.js';
import { captureErrorLeaks } from './canaries/capture-leaks.js';
import { pageJson } from './entries.js';
import { DEFAULT_FILTERS } from './filters.js';
import { rawPage } from './pages.js';
import { type Preparation, useDatabase } from './postgres/index.js';
import { startTemporaryPostgres, type TemporaryPostgres } from './postgres/temporary-server.js';

export const TEST_SCHEMA = 'scanfeed';
export const tables = tablesOf(TEST_SCHEMA);

/** Returns the connection options for a URL, as the settings create them. */
export function connectionOf(url: string): ClientOptions {
  const { host, port, user, password, database } = pgConnection.parse(url);
  return {
    ...(host && { host }),
    ...(port && { port: Number(port) }),
    ...(user && { user }),
    ...(password !== undefined && { password: password as string }),
    ...(database && { database }),
  };
}

export function openTestDatabase(url: string, maxConnections = 5): Database {
  return openDatabase({ connection: connectionOf(url), maxConnections });
}

/** A database with the schema of this release. */
export const MIGRATED: Preparation = {
  key: 'migrated',
  prepare: async (url) => {
    const database = openTestDatabase(url, 1);
    await migrate(connectStore(database, TEST_SCHEMA), await readMigrations());
    await database.close();
  },
};

export const testFeed = (over: Partial<FeedIdentity> = {}): FeedIdentity => ({
  name: 'default',
  baseUrl: 'https://service.test/v1',
  filters: DEFAULT_FILTERS,
  keepHistory: true,
  start: 'beginning',
  ...over,
});

/** Returns the claim of a page that is not the end and proves no delivery. */
export const claimNothing = (): FreshnessClaim => ({
  end: 'no',
  polledAt: performance.now(),
  completeUpTo: null,
  lastDeliveredAt: null,
});

/** A migrated database on a separate server, for what concerns the whole server. */
export function useServerOfItsOwn(settings: ServerSettings = {}): { readonly url: string } {
  let server: TemporaryPostgres | undefined;
  beforeAll(async () => {
    server = await startTemporaryPostgres({ settings });
    await MIGRATED.prepare(server.url);
  });
  afterAll(() => server?.stop());
  return {
    get url() {
      if (server === undefined) throw new Error('the server exists only within tests and hooks');
      return server.url;
    },
  };
}

/** A migrated database for one test file, and the store on it. */
export interface StoreSetup {
  readonly store: FeedStore;
  readonly database: Database;
  readonly connection: StoreConnection;
  readonly operatorStore: OperatorStore;
  rows<T>(query: RawBuilder<T>): Promise<T[]>;
  /** Returns whether a lease is still that of its feed. */
  isHeld(lease: LeaseGrant): Promise<boolean>;
  /** Takes the lease of a feed and returns functions that commit pages of entries (JSON texts) to it. */
  takeFeed(over?: Partial<FeedIdentity>): Promise<TestFeed>;
}

export interface TestFeed {
  readonly lease: LeaseGrant;
  /** Commits the entries as the next page. */
  commit(entries: readonly string[], over?: Partial<PageCommit>): Promise<CommitOutcome>;
  /** Commits the entries and returns the counts; throws if the commit was fenced. */
  counts(entries: readonly string[], over?: Partial<PageCommit>): Promise<CommitCounts>;
}

export function useStore(provided: { readonly url: string } = useDatabase(MIGRATED)): StoreSetup {
  let database: Database | undefined;
  beforeAll(() => {
    database = openTestDatabase(provided.url);
  });
  afterAll(() => database?.close());
  const opened = () => {
    if (database === undefined) throw new Error('the store exists only within tests and hooks');
    return database;
  };
  const monotonic = () => performance.now();
  const createdStore = () =>
    checkedForLeaks(
      createStore(opened(), {
        schema: TEST_SCHEMA,
        pendingRetryMs: 30_000,
        keptDays: null,
        monotonic,
      }),
    );
  return {
    get store() {
      return createdStore();
    },
    get database() {
      return opened();
    },
    get connection() {
      return connectStore(opened(), TEST_SCHEMA);
    },
    get operatorStore() {
      return createOperatorStore(connectStore(opened(), TEST_SCHEMA));
    },
    rows: async (query) => (await query.execute(opened().sql)).rows,
    isHeld: async ({ feed, holder, epoch }) => {
      const stored = (await createdStore().readFeeds([feed])).get(feed);
      return stored?.holder === holder && stored.epoch === epoch;
    },
    takeFeed: async (over) => {
      await liveAs(connectStore(opened(), TEST_SCHEMA));
      return takeFeed(createdStore(), testFeed(over));
    },
  };
}

/** Makes a process alive that does nothing: while it is, the feeds that it holds are led. */
export async function liveAs(connection: StoreConnection, holder = 'test', ttlMs = 3_600_000): Promise<void> {
  await createProcesses(connection).renewProcess({ holder, feeds: 1, unusable: [], ttlMs });
}

/** Returns a store whose errors are checked for leaks before the caller handles them. */
function checkedForLeaks(store: FeedStore): FeedStore {
  const methods = Object.entries(store) as [string, (...given: unknown[]) => unknown][];
  const checked = methods.map(([name, method]) => [
    name,
    async (...given: unknown[]) => {
      try {
        return await method(...given);
      } catch (error) {
        captureErrorLeaks(`an error of ${name}`, error);
        throw error;
      }
    },
  ]);
  return Object.fromEntries(checked) as FeedStore;
}

/** Number of attempts to take a lease: another writer of the test, such as an erasure, may lock the row of the feed. */
const LEASE_ATTEMPTS = 200;

async function takeLease(store: FeedStore, feed: FeedIdentity, holder: string): Promise<LeaseGrant> {
  for (let attempt = 0; attempt < LEASE_ATTEMPTS; attempt += 1) {
    const lease = await store.acquireLease(feed, holder);
    if (lease !== null) return lease;
  }
  throw new Error('the feed is held by another');
}

export async function takeFeed(store: FeedStore, feed: FeedIdentity, holder = 'test'): Promise<TestFeed> {
  const lease = await takeLease(store, feed, holder);
  let { cursor } = await store.readPosition(feed.name);
  let pages = 0;
  const commit = async (entries: readonly string[], over: Partial<PageCommit> = {}) => {
    const to = `${lease.epoch}-${pages++}`;
    const page = rawPage(pageJson(entries, to));
    const checked = checkEntries(page);
    const outcome = await store.commitPage({
      lease,
      from: cursor,
      to,
      batch: batchOf(checked.entries),
      quarantine: checked.quarantine,
      freshness: claimNothing(),
      ...over,
    });
    if (outcome.kind === 'committed') cursor = over.to ?? to;
    return outcome;
  };
  return {
    lease,
    commit,
    counts: async (entries, over) => {
      const outcome = await commit(entries, over);
      if (outcome.kind === 'fenced') throw new Error('fenced');
      return outcome.counts;
    },
  };
}

/** Deletes all rows. TRUNCATE would make new files of each table and its indexes, which takes longer. */
export async function emptyTables({ rows }: StoreSetup, ...names: readonly RawBuilder<unknown>[]): Promise<void> {
  const statements = names.map((name) => sql`DELETE FROM ${name};`);
  await rows(sql`DO $$ BEGIN ${sql.join(statements, sql` `)} END $$`);
}

/** The columns of `runs` that tests read, with `data` as text, since drivers read numbers differently. */
export const runRow = (scanId: string) => sql<{ data: string; extra: string; [column: string]: unknown }>`
  SELECT *, data::text, extra::text FROM ${tables.runs} WHERE scan_id = ${scanId}`;
