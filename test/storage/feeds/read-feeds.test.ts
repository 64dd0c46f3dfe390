import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { MAX_COUNTED } from '../../../src/core/counts.js';
import { createProcesses } from '../../../src/storage/feeds/processes.js';
import { liveAs, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const setup = useStore();
const read = async (feed: string) => (await setup.store.readFeeds([feed])).get(feed);

it('reads the figures, the holder, the epoch and the unfinished kinds of each feed when there are several', async () => {
  await liveAs(setup.connection, 'dead', -1);
  await liveAs(setup.connection, 'alive');
  const one = await takeFeed(setup.store, testFeed({ name: 'one' }), 'alive');
  await takeFeed(setup.store, testFeed({ name: 'two' }), 'dead');
  const two = await takeFeed(setup.store, testFeed({ name: 'two' }), 'dead');
  await one.commit(['{"scanId":"unusable"}', '{"scanId":"unusable too"}']);
  await two.commit(['{"scanId":"unusable as well"}']);
  await setup.rows(sql`INSERT INTO ${tables.passes} (feed, kind, until, finished_at) VALUES
    ('one', 'full', now(), now()), ('two', 'backfill', now(), NULL), ('two', 'recent', now(), NULL),
    ('two', 'recent', now(), now())`);
  const feeds = await setup.store.readFeeds(['one', 'two', 'never']);
  expect([...feeds.keys()].sort()).toEqual(['never', 'one', 'two']);
  expect(feeds.get('one')).toMatchObject({
    ...{ holder: 'alive', epoch: 1, unfinished: [] },
    status: { leaseHolder: 'alive', quarantinedEntries: 2, baseUrl: testFeed().baseUrl },
  });
  expect(feeds.get('two')).toMatchObject({
    ...{ holder: 'dead', epoch: 2, unfinished: ['backfill', 'recent'] },
    status: { leaseHolder: null, quarantinedEntries: 1 },
  });
  expect(feeds.get('never')).toMatchObject({
    ...{ holder: null, epoch: 0, unfinished: [] },
    status: { leaseHolder: null, quarantinedEntries: 0, baseUrl: null },
  });
});

it('reads nothing when no feed is asked for', async () => {
  expect(await setup.store.readFeeds([])).toEqual(new Map());
});

it.each([
  [
    'was given back',
    async (holder: string) =>
      setup.rows(sql`UPDATE ${tables.feeds} SET lease_holder = NULL
    WHERE lease_holder = ${holder}`),
  ],
  ['has a holder that ended', async (holder: string) => createProcesses(setup.connection).removeProcess(holder)],
  ['has a holder that expired', async (holder: string) => liveAs(setup.connection, holder, -1)],
  [
    'has a holder that renewed before the clock was set back',
    async (holder: string) =>
      setup.rows(sql`UPDATE ${tables.processes} SET renewed_at = renewed_at + interval '1 min'
      WHERE holder = ${holder}`),
  ],
])('names no leader when the feed %s', async (circumstance, end) => {
  const holder = `holder that ${circumstance}`;
  await liveAs(setup.connection, holder);
  await takeFeed(setup.store, testFeed({ name: circumstance }), holder);
  expect(await read(circumstance)).toMatchObject({ holder, status: { leaseHolder: holder } });
  await end(holder);
  expect(await read(circumstance)).toMatchObject({ epoch: 1, status: { leaseHolder: null } });
});

it('counts no more rows than it can read every few seconds', async () => {
  await setup.takeFeed({ name: 'large' });
  await setup.takeFeed({ name: 'small' });
  await setup.rows(sql`
    INSERT INTO ${tables.runs} (scan_id, revision, status, environment, file_name, partner_test_mode, data, feed,
      stored_by, repaired, first_synced_at, synced_at, change_seq, result_state, pending_reason, pending_since, next_try_at)
    SELECT n, 1, 'completed', 'prod', 'a.pdf', false, NULL, CASE WHEN n <= 3 THEN 'small' ELSE 'large' END,
      'feed', false, now(), now(), n,
      CASE WHEN n % 2 = 0 THEN 'complete' ELSE 'pending' END, CASE WHEN n % 2 = 1 THEN 'not_loaded' END,
      CASE WHEN n % 2 = 1 THEN now() END, CASE WHEN n % 2 = 1 THEN now() END
    FROM generate_series(1, 2 * ${MAX_COUNTED}::int + 10) AS n`);
  await setup.rows(sql`
    INSERT INTO ${tables.quarantine} (feed, identity, reason, detail, payload, state)
    SELECT 'large', n, 'status', '', '', 'open' FROM generate_series(1, ${MAX_COUNTED}::int + 1) AS n`);
  const most = { pendingResults: MAX_COUNTED, quarantinedEntries: MAX_COUNTED, runsWithoutData: MAX_COUNTED };
  expect(await setup.store.readStatus('large')).toMatchObject(most);
  const feeds = await setup.store.readFeeds(['large', 'small']);
  expect(feeds.get('large')).toMatchObject({ status: most });
  expect(feeds.get('small')).toMatchObject({
    status: { pendingResults: 2, quarantinedEntries: 0, runsWithoutData: 1 },
  });
});
