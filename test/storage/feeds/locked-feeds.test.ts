import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Clock } from '../../../src/core/clock.js';
import type { Database } from '../../../src/storage/connection/pool.js';
import { createStore } from '../../../src/storage/store.js';
import { createLeaseRounds } from '../../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../../src/sync/lease/process-leases.js';
import type { LeaseGrant } from '../../../src/sync/ports/index.js';
import { usableSchema } from '../../support/engine.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, testFeed, useStore } from '../../support/store.js';

const TTL_MS = 300_000;
const LOCKED = ['locked-1', 'locked-2', 'locked-3'];
const OTHERS = ['other-1', 'other-2', 'other-3'];
const FEEDS = [...LOCKED, ...OTHERS];

const provided = useDatabase(MIGRATED);
const bench = useStore(provided);
/** The connections of a process for the leases of many feeds. */
let leaseDatabase: Database;
beforeAll(() => {
  leaseDatabase = openTestDatabase(provided.url, 2);
});
afterAll(() => leaseDatabase.close());

/** The leases of a process that follows the feeds, on a clock that jumps to the end of each sleep. */
function followFeeds(holder: string) {
  let elapsed = 0;
  const monotonic = () => elapsed;
  const clock: Clock = {
    ...{ monotonic, now: monotonic, random: () => 0.5 },
    sleep: async (ms) => {
      elapsed += ms;
    },
  };
  const settings = { schema: TEST_SCHEMA, leaseTtlMs: TTL_MS, pendingRetryMs: 30_000, keptDays: null, monotonic };
  const store = createStore(leaseDatabase, settings);
  const leases = createProcessLeases({ clock, holder, isDead: () => false, leaseTtlMs: TTL_MS });
  const rounds = createLeaseRounds(leases, usableSchema(store));
  for (const feed of FEEDS) rounds.follow(feed);
  const { signal } = new AbortController();
  return {
    take: async (name: string) => (await rounds.take(testFeed({ name }), null, signal))?.lease ?? null,
    renew: (lease: LeaseGrant) => rounds.renew(lease, signal),
  };
}

/** Does the work while the rows of the locked feeds are locked, as by commits. */
const whileLocked = <T>(work: () => Promise<T>): Promise<T> =>
  bench.database.sql.transaction().execute(async (tx) => {
    await sql`SELECT FROM ${tables.feeds} WHERE name = ANY (${LOCKED}) FOR NO KEY UPDATE`.execute(tx);
    return work();
  });

it('the leases of the other feeds are taken and renewed when the rows of some feeds are locked', async () => {
  const killed = followFeeds('killed');
  for (const feed of FEEDS) await killed.take(feed);
  await bench.rows(sql`UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() - interval '1 second'`);

  const survivor = followFeeds('survivor');
  const takenLeases = await whileLocked(() => Promise.all(FEEDS.map(survivor.take)));
  expect(takenLeases.map((lease) => lease?.feed ?? null)).toEqual([null, null, null, ...OTHERS]);

  const leases = [...(await Promise.all(LOCKED.map(survivor.take))), ...takenLeases].filter((lease) => lease !== null);
  expect(leases.map(({ feed }) => feed)).toEqual(FEEDS);
  // Little of the leases is left.
  await bench.rows(
    sql`UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() + ${TTL_MS / 4000} * interval '1 s'`,
  );
  const waiting = await whileLocked(async () => {
    const renewals = leases.map(survivor.renew);
    await Promise.all(renewals.slice(LOCKED.length));
    for (let round = 0; round < 2; round += 1) {
      const renewed = await Promise.all(leases.slice(LOCKED.length).map(survivor.renew));
      expect(renewed).toMatchObject(OTHERS.map(() => ({ answer: { status: { leaseHolder: 'survivor' } } })));
    }
    return renewals;
  });
  await Promise.all(waiting);
});
