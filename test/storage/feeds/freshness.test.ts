import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import type { FeedStore, FreshnessClaim } from '../../../src/sync/ports/index.js';
import { useDatabase } from '../../support/postgres/index.js';
import {
  claimNothing,
  liveAs,
  MIGRATED,
  openTestDatabase,
  TEST_SCHEMA,
  tables,
  testFeed,
  useStore,
} from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const provided = useDatabase(MIGRATED);
const setup = useStore(provided);

const SETTINGS = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
const EMPTY = { batch: batchOf([]), quarantine: [] };

const databaseTime = async () =>
  (await setup.rows(sql<{ now: Date }>`SELECT clock_timestamp() AS now`))[0]?.now.getTime() ?? Number.NaN;

/** The freshness of a commit that ends with a poll, or with the delivery of an entry, at that monotonic time. */
const known = (instant: number, atEnd: boolean): FreshnessClaim => ({
  end: atEnd ? 'yes' : 'no',
  polledAt: instant,
  completeUpTo: instant,
  lastDeliveredAt: null,
});

const take = async (store: FeedStore, name: string) => {
  const lease = await store.acquireLease(testFeed({ name }), 'test');
  if (lease === null) throw new Error('no lease');
  return lease;
};

const times = async (name: string) => {
  const [row] = await setup.rows(
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
  const store = createStore(setup.database, { ...SETTINGS, monotonic: () => monotonic });
  const lease = await take(store, 'set back');
  monotonic += 3_600_000; // as much less has passed on the database's clock
  const freshness = known(monotonic - 60_000, true);
  expect(await store.commitPage({ lease, from: null, to: null, ...EMPTY, freshness })).toMatchObject({
    kind: 'committed',
  });
  const { complete } = await times('set back');
  expect(complete.getTime()).toBeLessThanOrEqual((await databaseTime()) - 60_000);
});

describe("the database's clock is set back", () => {
  const SET_BACK = sql`interval '60 s'`;
  /** Sets the clock of the database back for a feed and its process: all their times are now that much later. */
  const setBack = async (name: string) => {
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = data_complete_as_of + ${SET_BACK},
      last_commit_at = last_commit_at + ${SET_BACK} WHERE name = ${name}`);
    await setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = renewed_at + ${SET_BACK},
      expires_at = expires_at + ${SET_BACK}`);
  };
  const follow = async (name: string) => {
    const store = createStore(setup.database, { ...SETTINGS, monotonic: () => performance.now() });
    await liveAs(setup.connection);
    const lease = await take(store, name);
    const commit = (freshness: FreshnessClaim) =>
      store.commitPage({ lease, from: null, to: null, ...EMPTY, freshness });
    await commit(known(performance.now(), true));
    await setBack(name);
    return { store, lease, commit };
  };
  const completeAsOf = async (name: string) => (await setup.store.readStatus(name)).dataCompleteAsOf;

  test('claims no future time at the end of the feed', async () => {
    const { commit } = await follow('back at the end');
    await commit(known(performance.now(), true));
    expect((await completeAsOf('back at the end'))?.getTime()).toBeLessThanOrEqual(await databaseTime());
  });

  test('claims nothing before the end of the feed', async () => {
    const { commit } = await follow('back before the end');
    await commit({ ...known(performance.now(), false), completeUpTo: null });
    expect(await completeAsOf('back before the end')).toBeNull();
  });

  test('claims nothing, while the clock catches up, when the service is down', async () => {
    const { store } = await follow('back during an outage');
    const feeds = await store.readFeeds(['back during an outage', 'never']);
    expect(feeds.get('back during an outage')).toMatchObject({ status: { dataCompleteAsOf: null, lagMs: null } });
  });

  test('claims nothing in commands and reports, also while no process leads the feed', async () => {
    await follow('back without a leader');
    const reports = await setup.operatorStore.readFeedReports();
    expect(reports.find(({ feed }) => feed === 'back without a leader')).toMatchObject({
      ...{ dataCompleteAsOf: null, lagSeconds: null },
    });
    expect(await setup.operatorStore.feeds.find('back without a leader')).toMatchObject({ dataCompleteAsOf: null });
    expect(
      await setup.rows(sql`SELECT data_complete_as_of, lag_seconds FROM ${sql.id(`${TEST_SCHEMA}_reporting`)}.sync_status
        WHERE feed = 'back without a leader'`),
    ).toEqual([{ data_complete_as_of: null, lag_seconds: Number.POSITIVE_INFINITY }]);
  });

  test('claims nothing, after the clock has caught up, when the holder had its feeds forgotten', async () => {
    const [names, others] = [['forgotten', 'forgotten too'], 'of another'] as const;
    for (const name of names) await follow(name);
    const { store } = await follow(others);
    await setup.rows(sql`UPDATE ${tables.feeds} SET lease_holder = 'another' WHERE name = ${others}`);
    await store.forgetFreshness('test');
    await setup.rows(sql`UPDATE ${tables.feeds} SET data_complete_as_of = data_complete_as_of - ${SET_BACK},
      last_commit_at = last_commit_at - ${SET_BACK} WHERE name = ANY (${[...names, others]})`);
    for (const name of names) expect(await completeAsOf(name)).toBeNull();
    expect(await completeAsOf(others)).not.toBeNull();
  });

  test('claims what the next commit knows when the freshness was forgotten', async () => {
    const { store, commit } = await follow('known again');
    await store.forgetFreshness('test');
    await commit(known(performance.now(), true));
    expect(await completeAsOf('known again')).not.toBeNull();
  });

  test('lets another process take the feed at once', async () => {
    await follow('taken over');
    expect((await setup.store.readStatus('taken over')).leaseHolder).toBeNull();
    const taken = await setup.store.acquireLease(testFeed({ name: 'taken over' }), 'another');
    expect(taken).toMatchObject({ holder: 'another' });
    expect(await completeAsOf('taken over')).toBeNull();
  });

  test('keeps what is claimed while the clock runs on', async () => {
    const store = createStore(setup.database, { ...SETTINGS, monotonic: () => performance.now() });
    const lease = await take(store, 'runs on');
    const commit = (freshness: FreshnessClaim) =>
      store.commitPage({ lease, from: null, to: null, ...EMPTY, freshness });
    await commit(known(performance.now(), true));
    const claimed = await completeAsOf('runs on');
    await commit(claimNothing());
    expect(await completeAsOf('runs on')).toEqual(claimed);
    await take(store, 'runs on');
    expect(await completeAsOf('runs on')).toEqual(claimed);
  });
});
