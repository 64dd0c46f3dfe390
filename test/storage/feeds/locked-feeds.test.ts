import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Database } from '../../../src/storage/connection/pool.js';
import { connectStore } from '../../../src/storage/connection/store-connection.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { createStore } from '../../../src/storage/store.js';
import { entryJson } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const LOCKED = ['locked-1', 'locked-2', 'locked-3'];
const OTHERS = ['other-1', 'other-2', 'other-3'];
const FEEDS = [...LOCKED, ...OTHERS];

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);
/** The connection of all processes for their leases: a statement that waited for a commit would hold up the others. */
let leaseDatabase: Database;
beforeAll(() => {
  leaseDatabase = openTestDatabase(provided.url, 1);
});
afterAll(() => leaseDatabase.close());

const openStore = (database: Database) =>
  createStore(database, { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null, monotonic: () => 0 });
const take = async (holder: string, feeds: readonly string[]) => {
  const store = openStore(leaseDatabase);
  const leases = await Promise.all(feeds.map((name) => store.acquireLease(testFeed({ name }), holder)));
  return leases.map((lease) => lease?.feed ?? null);
};
const renew = (holder: string) =>
  createProcesses(connectStore(leaseDatabase, TEST_SCHEMA)).renewProcess({
    ...{ holder, feeds: FEEDS.length, unusable: [], ttlMs: 30_000 },
  });
/** The clock of the database decides, and a test cannot move it. */
const expire = (holder: string) =>
  setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = clock_timestamp() - interval '1 minute',
    expires_at = clock_timestamp() - interval '1 second' WHERE holder = ${holder}`);

/** Does the work while the rows of the locked feeds are locked, as by commits. */
const whileLocked = <T>(work: () => Promise<T>): Promise<T> =>
  setup.database.sql.transaction().execute(async (tx) => {
    await sql`UPDATE ${tables.feeds} SET last_commit_at = now() WHERE name = ANY (${LOCKED})`.execute(tx);
    return work();
  });

beforeEach(async () => {
  await setup.rows(sql`DELETE FROM ${tables.feeds}`);
  await setup.rows(sql`DELETE FROM ${tables.processes}`);
});

it('the other feeds of a dead process are taken when commits lock the rows of some', async () => {
  await take('killed', FEEDS);
  expect(await whileLocked(() => take('survivor', FEEDS))).toEqual([null, null, null, ...OTHERS]);
  expect(await take('survivor', LOCKED)).toEqual(LOCKED);
});

it('the process is renewed and all feeds are read when commits lock the rows of some', async () => {
  await renew('leader');
  await take('leader', FEEDS);
  await whileLocked(async () => {
    expect(await renew('leader')).toMatchObject({ wasAlive: true });
    const feeds = await openStore(leaseDatabase).readFeeds(FEEDS);
    expect([...feeds.values()].map(({ status }) => status.leaseHolder)).toEqual(FEEDS.map(() => 'leader'));
  });
});

it('a feed stays with its process when a commit takes longer than the lease', async () => {
  await renew('leader');
  const feed = await takeFeed(openStore(setup.database), testFeed(), 'leader');
  await setup.rows(sql`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql
    AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN new; END'`);
  await setup.rows(sql`CREATE TRIGGER wait BEFORE INSERT ON ${tables.runs}
    FOR EACH ROW EXECUTE FUNCTION wait_for_test()`);
  const { commit } = await setup.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(1)`.execute(tx);
    const committing = feed.commit([entryJson()]);
    await untilWaiting(setup.database.sql, 1);
    await expire('leader');
    expect(await take('standby', ['default'])).toEqual([null]);
    expect(await renew('leader')).toMatchObject({ wasAlive: false });
    return { commit: committing };
  });
  expect(await commit).toMatchObject({ kind: 'committed' });
  expect(await take('standby', ['default'])).toEqual([null]);
  expect(await feed.counts([entryJson({ scanId: 'next' })])).toMatchObject({ inserted: 1 });
});
