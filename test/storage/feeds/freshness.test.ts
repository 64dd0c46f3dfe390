import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { batchOf } from '../../../src/sync/page/check-page.js';
import type { FeedStore, FreshnessClaim } from '../../../src/sync/ports/index.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, testFeed, useStore } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const provided = useDatabase(MIGRATED);
const bench = useStore(provided);

const SETTINGS = { schema: TEST_SCHEMA, leaseTtlMs: 30_000, pendingRetryMs: 30_000, keptDays: null };
const EMPTY = { batch: batchOf([]), quarantine: [] };

const databaseTime = async () =>
  (await bench.rows(sql<{ now: Date }>`SELECT clock_timestamp() AS now`))[0]?.now.getTime() ?? Number.NaN;

/** The freshness of a commit that ends with a poll, or with the delivery of an entry, at that monotonic time. */
const known = (instant: number, atEnd: boolean): FreshnessClaim => ({
  atEnd,
  polledAt: instant,
  lastDelivered: instant,
  lastDeliveredAt: null,
});

const take = async (store: FeedStore, name: string) => {
  const lease = await store.acquireLease(testFeed({ name }), 'test', 30_000);
  if (lease === null) throw new Error('no lease');
  return lease;
};

const times = async (name: string) => {
  const [row] = await bench.rows(
    sql<{
      complete: Date;
      polled: Date;
    }>`SELECT data_complete_as_of AS complete, last_poll_at AS polled FROM ${tables.feeds} WHERE name = ${name}`,
  );
  if (row === undefined) throw new Error('no feed');
  return row;
};

test.each([
  ['at the end', true, 0],
  ['before the end', false, 0],
  ["and the database's clock was set back since", true, 500],
])('does not claim the duration of the commit when it arrives late %s', async (circumstance, atEnd, setBackMs) => {
  const name = `slow ${circumstance}`;
  let aheadMs = 0;
  const monotonic = () => performance.now() + aheadMs;
  const proxy = await TcpProxy.to(provided.url);
  const database = openTestDatabase(proxy.urlOf(provided.url), 1);
  const store = createStore(database, { ...SETTINGS, monotonic });
  const lease = await take(store, name);
  aheadMs = setBackMs; // less time has passed on the database's clock
  const before = await databaseTime();
  proxy.set({ latencyToServerMs: 1_500 });
  const freshness = known(monotonic(), atEnd);
  const committed = store.commitPage({ lease, from: null, to: null, ...EMPTY, freshness });
  const listed = await databaseTime(); // when an entry is listed that the poll did not bring
  expect(await committed).toMatchObject({ kind: 'committed' });
  const { complete, polled } = await times(name);
  expect(complete.getTime()).toBeLessThanOrEqual(listed);
  expect(polled.getTime()).toBeLessThanOrEqual(listed);
  expect(before - complete.getTime()).toBeLessThan(60_000); // it does claim what was polled
  await database.close();
  await proxy.close();
});

test('claims no future time when the clock of the database was set back', async () => {
  let monotonic = 0;
  const store = createStore(bench.database, { ...SETTINGS, monotonic: () => monotonic });
  const lease = await take(store, 'set back');
  monotonic += 3_600_000; // as much less has passed on the database's clock
  const freshness = known(monotonic - 60_000, true);
  expect(await store.commitPage({ lease, from: null, to: null, ...EMPTY, freshness })).toMatchObject({
    kind: 'committed',
  });
  const { complete } = await times('set back');
  expect(complete.getTime()).toBeLessThanOrEqual((await databaseTime()) - 60_000);
});
