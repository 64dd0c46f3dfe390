import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { findOrphaned } from '../../../src/storage/runs/pending.js';
import { commitPending } from '../../support/pending.js';
import { type TestFeed, tables, useStore } from '../../support/store.js';

const bench = useStore();
let own: TestFeed;
let former: TestFeed;

beforeEach(async () => {
  await bench.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}`);
  own = await bench.takeFeed({ name: 'own' });
  former = await bench.takeFeed({ name: 'former' });
  await commitPending(former, { scanId: 'pending' });
  await former.commit([]);
});

/** The feed was last led and last read this long ago. */
const silentFor = (hours: number) =>
  bench.rows(sql`
    UPDATE ${tables.feeds} SET
      lease_expires_at = lease_expires_at - ${hours} * interval '1 hour',
      last_commit_at = last_commit_at - ${hours} * interval '1 hour',
      created_at = created_at - ${hours} * interval '1 hour'
    WHERE name = 'former'`);
const moveFormer = (baseUrl: string) =>
  bench.rows(sql`UPDATE ${tables.feeds} SET base_url = ${baseUrl} WHERE name = 'former'`);
const adopted = () => bench.store.adoptPending(own.lease);
const due = async (feed: string) => {
  await bench.rows(sql`UPDATE ${tables.runs} SET next_try_at = clock_timestamp() WHERE next_try_at IS NOT NULL`);
  return (await bench.store.duePending(feed, 10)).map(({ scanId }) => scanId);
};
const orphaned = () => findOrphaned(bench.connection);
const pending = async (feed: string) => (await bench.store.readStatus(feed)).pendingResults;

describe('pending results of another feed', () => {
  it('are adopted and counted when it had no leader for a day', async () => {
    await silentFor(25);
    expect(await adopted()).toBe(1);
    expect([await due('own'), await due('former')]).toEqual([['pending'], []]);
    expect([await pending('own'), await pending('former')]).toEqual([1, 0]);
    expect(await adopted()).toBe(0);
  });

  it('are adopted when it released its lease a day ago', async () => {
    await bench.store.releaseLease(former.lease);
    expect(await adopted()).toBe(0);
    await silentFor(25);
    expect(await adopted()).toBe(1);
  });

  it('are adopted when it was deleted', async () => {
    await bench.rows(sql`DELETE FROM ${tables.feeds} WHERE name = 'former'`);
    expect(await adopted()).toBe(1);
  });

  it('are not adopted when it may come back', async () => {
    await silentFor(23);
    expect(await adopted()).toBe(0);
    expect(await due('former')).toEqual(['pending']);
  });

  it('are not adopted when it has a leader, even if it reads nothing', async () => {
    await silentFor(100);
    await bench.store.renewLease(former.lease, 30_000);
    expect(await adopted()).toBe(0);
  });

  it('are not adopted when its service has another address', async () => {
    await silentFor(100);
    await moveFormer('https://elsewhere.test/v1');
    expect(await adopted()).toBe(0);
  });

  it('are orphaned when no feed with a leader has their address, until it is adopted', async () => {
    await silentFor(25);
    expect(await orphaned()).toEqual([]);
    const baseUrl = 'https://elsewhere.test/v1';
    await moveFormer(baseUrl);
    expect(await orphaned()).toEqual([{ feed: 'former', baseUrl, results: 1 }]);
    const [address] = await bench.rows<{ base_url: string }>(
      sql`SELECT base_url FROM ${tables.feeds} WHERE name = 'own'`,
    );
    await bench.operatorStore.feeds.adopt('former', { from: baseUrl, baseUrl: address?.base_url ?? '' });
    expect(await orphaned()).toEqual([]);
    expect(await adopted()).toBe(1);
  });

  it('are not orphaned when their feed may come back or they were given up', async () => {
    await moveFormer('https://elsewhere.test/v1');
    await silentFor(23);
    expect(await orphaned()).toEqual([]);
    await silentFor(2);
    expect(await orphaned()).toHaveLength(1);
    expect(await bench.operatorStore.pending.giveUp('former', new Map([['pending', 1]]))).toEqual(['pending']);
    expect(await orphaned()).toEqual([]);
  });

  it('are not adopted when the lease was lost', async () => {
    await silentFor(25);
    await bench.rows(sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1 WHERE name = 'own'`);
    expect(await adopted()).toBe(0);
    expect(await pending('former')).toBe(1);
  });

  it('are not changed when they are complete', async () => {
    await silentFor(25);
    await bench.rows(sql`UPDATE ${tables.runs} SET result_state = 'complete', pending_reason = NULL,
      pending_since = NULL, next_try_at = NULL`);
    expect(await adopted()).toBe(0);
  });
});
