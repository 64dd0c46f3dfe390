import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { MAX_COUNTED } from '../../../src/core/counts.js';
import { tables, testFeed, useStore } from '../../support/store.js';

const bench = useStore();

describe('the renewal of many leases', () => {
  const TTL = 300_000;

  it('extends each lease that is still held, and reads the figures of its feed', async () => {
    const [one, two, lost] = [
      await bench.takeFeed({ name: 'one' }),
      await bench.takeFeed({ name: 'two' }),
      await bench.takeFeed({ name: 'lost' }),
    ];
    await one.commit(['{"scanId":"unusable"}', '{"scanId":"unusable too"}']);
    await two.commit(['{"scanId":"unusable as well"}']);
    await bench.rows(sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1 WHERE name = 'lost'`);
    await bench.rows(sql`INSERT INTO ${tables.passes} (feed, kind, until) VALUES ('two', 'backfill', now())`);
    const renewals = await bench.store.renewLeases([one.lease, two.lease, lost.lease], TTL);
    expect([...renewals.keys()].sort()).toEqual(['one', 'two']);
    expect(renewals.get('one')).toMatchObject({ status: { quarantinedEntries: 2 }, unfinished: [] });
    expect(renewals.get('two')).toMatchObject({ status: { quarantinedEntries: 1 }, unfinished: ['backfill'] });
    expect(await leftMs('one')).toBeGreaterThan(TTL - 60_000);
    expect(await leftMs('two')).toBeGreaterThan(TTL - 60_000);
    expect(await leftMs('lost')).toBeLessThan(60_000);
  });

  it('does not wait for the commit of a feed, and reports how long its lease is held without an extension', async () => {
    const [quiet, busy] = [await bench.takeFeed({ name: 'quiet' }), await bench.takeFeed({ name: 'busy' })];
    const renewals = await bench.database.sql.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.feeds} WHERE name = 'busy' FOR NO KEY UPDATE`.execute(tx);
      return bench.store.renewLeases([quiet.lease, busy.lease], TTL);
    });
    expect(renewals.get('quiet')?.heldForMs).toBeGreaterThan(TTL - 60_000);
    expect(renewals.get('busy')).toMatchObject({ status: { leaseHolder: busy.lease.holder } });
    expect(renewals.get('busy')?.heldForMs).toBeLessThan(60_000);
    expect(await leftMs('busy')).toBeLessThan(60_000);
  });

  const leftMs = async (feed: string) => {
    const [row] = await bench.rows(sql<{ ms: number }>`
      SELECT extract(epoch FROM lease_expires_at - clock_timestamp())::double precision * 1000 AS ms
      FROM ${tables.feeds} WHERE name = ${feed}`);
    return row?.ms;
  };
});

it('the status counts no more rows than it can read every few seconds', async () => {
  const feed = await bench.takeFeed({ name: 'large' });
  await bench.takeFeed({ name: 'small' });
  await bench.rows(sql`
    INSERT INTO ${tables.runs} (scan_id, revision, status, environment, file_name, partner_test_mode, data, feed,
      stored_by, repaired, first_synced_at, synced_at, change_seq, result_state, pending_reason, pending_since, next_try_at)
    SELECT n, 1, 'completed', 'prod', 'a.pdf', false, NULL, CASE WHEN n <= 3 THEN 'small' ELSE 'large' END,
      'feed', false, now(), now(), n,
      CASE WHEN n % 2 = 0 THEN 'complete' ELSE 'pending' END, CASE WHEN n % 2 = 1 THEN 'not_loaded' END,
      CASE WHEN n % 2 = 1 THEN now() END, CASE WHEN n % 2 = 1 THEN now() END
    FROM generate_series(1, 2 * ${MAX_COUNTED}::int + 10) AS n`);
  await bench.rows(sql`
    INSERT INTO ${tables.quarantine} (feed, identity, reason, detail, payload, state)
    SELECT 'large', n, 'status', '', '', 'open' FROM generate_series(1, ${MAX_COUNTED}::int + 1) AS n`);
  const most = { pendingResults: MAX_COUNTED, quarantinedEntries: MAX_COUNTED, runsWithoutData: MAX_COUNTED };
  expect((await bench.store.renewLease(feed.lease, 30_000))?.status).toMatchObject(most);
  const statuses = await bench.store.readStatuses(['large', 'small']);
  expect(statuses.get('large')).toMatchObject(most);
  expect(statuses.get('small')).toMatchObject({ pendingResults: 2, quarantinedEntries: 0, runsWithoutData: 1 });
});

it('the statuses of many feeds are those of each, also of one that was never started', async () => {
  const feed = await bench.takeFeed({ name: 'started' });
  await feed.commit(['{"scanId":"unusable"}']);
  const statuses = await bench.store.readStatuses(['started', 'never']);
  expect(statuses.get('started')).toMatchObject({ quarantinedEntries: 1, baseUrl: testFeed().baseUrl });
  expect(statuses.get('started')).toMatchObject({ leaseHolder: feed.lease.holder });
  expect(statuses.get('never')).toMatchObject({ leaseHolder: null, baseUrl: null, pendingResults: 0 });
});
