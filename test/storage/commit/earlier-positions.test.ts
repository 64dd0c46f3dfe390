import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import type { RewindTarget } from '../../../src/storage/operator/feeds.js';
import { entryJson } from '../../support/entries.js';
import { passRows } from '../../support/passes.js';
import { type TestFeed, tables, useStore } from '../../support/store.js';

const setup = useStore();
let feed: TestFeed;

beforeEach(async () => {
  await setup.rows(sql`TRUNCATE ${tables.feeds}, ${tables.runs}, ${tables.cursorHistory} RESTART IDENTITY`);
  feed = await setup.takeFeed();
});

const delivered = (day: number) => new Date(Date.UTC(2026, 2, day));
/** Makes the stored positions older: they are stored at most every five minutes, and a test cannot move the clock. */
const letTimePass = () => setup.rows(sql`UPDATE ${tables.cursorHistory} SET noted_at = noted_at - interval '1 hour'`);
/** Commits a page up to each cursor, named after the day of its delivery in March, and stores the position. */
async function readUpTo(...days: readonly number[]): Promise<void> {
  for (const day of days) {
    await letTimePass();
    const lastDeliveredAt = delivered(day);
    await feed.commit([entryJson({ scanId: `day-${day}`, deliveredAt: lastDeliveredAt.toISOString() })], {
      to: `day-${day}`,
      freshness: { end: 'no', polledAt: performance.now(), completeUpTo: performance.now(), lastDeliveredAt },
    });
  }
}
async function rewind(to: Partial<RewindTarget>): Promise<void> {
  expect(await setup.operatorStore.feeds.rewind('default', { positionId: null, since: null, ...to })).toBe(true);
  feed = await setup.takeFeed();
}
const offered = async () => (await setup.store.readEarlierPositions('default')).cursors;
const readTo = async () => (await setup.store.readEarlierPositions('default')).deliveredUpTo;
const positionId = async (cursor: string) =>
  (await setup.rows(sql<{ id: string }>`SELECT id::text FROM ${tables.cursorHistory} WHERE cursor = ${cursor}`))[0]
    ?.id ?? '';

describe('earlier positions of a feed', () => {
  it('are offered newest first, without the current one, when the cursor is rejected', async () => {
    await readUpTo(1, 2, 3);
    expect(await offered()).toEqual(['day-2', 'day-1']);
    expect(await readTo()).toEqual(delivered(3));
  });

  it('are not offered when they were rejected before', async () => {
    await readUpTo(1, 2, 3);
    await setup.store.movePosition(feed.lease, 'day-3', { cursor: 'day-2', since: null });
    expect(await offered()).toEqual(['day-1']);
    await setup.store.movePosition(feed.lease, 'day-2', { cursor: 'day-1', since: null });
    expect(await offered()).toEqual([]);
  });

  it.each([
    ['deleted', sql`DELETE FROM ${tables.feeds}`],
    ['emptied with all others', sql`TRUNCATE ${tables.feeds}`],
  ])('are gone with their feed when it is %s: a feed that starts over must not skip entries', async (_, end) => {
    await readUpTo(1, 2, 3);
    const pass = { kind: 'full', since: null, until: delivered(3), completeAsOf: delivered(3) } as const;
    expect(await setup.store.beginPass(feed.lease, pass)).not.toBeNull();
    await setup.rows(end);
    feed = await setup.takeFeed();
    expect(await offered()).toEqual([]);
    expect(await passRows(setup, 'default')).toEqual([]);
  });

  it('are limited to twenty when there are more', async () => {
    await readUpTo(...Array.from({ length: 23 }, (_, index) => index + 1));
    const cursors = await offered();
    expect(cursors).toHaveLength(20);
    expect(cursors[0]).toBe('day-22');
  });

  it('are stored at once when the clock of the database was set back after the last one', async () => {
    await readUpTo(1);
    await setup.rows(sql`UPDATE ${tables.cursorHistory} SET noted_at = noted_at + interval '1 day'`);
    await feed.commit([], { from: 'day-1', to: 'day-2' });
    await feed.commit([], { from: 'day-2', to: 'day-3' });
    expect(await offered()).toEqual(['day-2', 'day-1']);
    await feed.commit([], { from: 'day-3', to: 'day-4' });
    expect(await offered()).toEqual(['day-2', 'day-1']);
  });

  it('are pruned when the feed keeps moving', async () => {
    await setup.rows(sql`INSERT INTO ${tables.cursorHistory} (feed, cursor, reason)
      SELECT feed, feed || number, 'checkpoint' FROM generate_series(1, 310) AS number, unnest('{default,other}'::text[]) AS feed`);
    const counts = () =>
      setup.rows(sql`SELECT feed, count(*)::int FROM ${tables.cursorHistory} GROUP BY feed ORDER BY feed`);
    await setup.store.movePosition(feed.lease, null, { cursor: 'x', since: null });
    expect(await counts()).toEqual([
      { feed: 'default', count: 300 },
      { feed: 'other', count: 310 },
    ]);
    await letTimePass();
    await feed.commit([], { from: 'x', to: 'y' });
    expect(await counts()).toMatchObject([{ feed: 'default', count: 300 }, {}]);
    expect(await offered()).toHaveLength(20);
  });
});

describe('earlier positions after a rewind', () => {
  it('are those up to the target and those stored since when it went to a position', async () => {
    await readUpTo(1, 2, 3, 4);
    await rewind({ positionId: await positionId('day-2') });
    expect(await setup.store.readPosition('default')).toMatchObject({ cursor: 'day-2' });
    expect(await offered()).toEqual(['day-1']);
    expect(await readTo()).toEqual(delivered(2));
    await readUpTo(3);
    expect(await offered()).toEqual(['day-2', 'day-1']);
  });

  it('are those up to the target and those stored since when it went to a time', async () => {
    await readUpTo(1, 2, 3, 4);
    await rewind({ since: delivered(2) });
    expect(await offered()).toEqual(['day-2', 'day-1']);
    expect(await readTo()).toEqual(delivered(2));
    await readUpTo(3, 4);
    expect(await offered()).toEqual(['day-3', 'day-2', 'day-1']);
  });

  it('are those stored since when it went to the start', async () => {
    await readUpTo(1, 2, 3, 4);
    await rewind({});
    expect(await offered()).toEqual([]);
    expect(await readTo()).toBeNull();
    await readUpTo(1, 2);
    expect(await offered()).toEqual(['day-1']);
    expect(await readTo(), 'and not what was read before').toEqual(delivered(2));
  });

  it('have the delivery time reached when a rewind went to a position stored later', async () => {
    await readUpTo(1, 2, 3, 4);
    await rewind({});
    await readUpTo(5, 6);
    await setup.rows(sql`UPDATE ${tables.feeds} SET delivered_up_to = ${delivered(9)}`);
    const fifth = await positionId('day-5');
    await rewind({ positionId: fifth });
    expect(await readTo()).toEqual(delivered(5));
  });

  it('exclude positions ahead of either target when there were two rewinds', async () => {
    await readUpTo(1, 2, 3, 4);
    await rewind({ positionId: await positionId('day-2') });
    await readUpTo(3);
    await rewind({ since: delivered(1) });
    expect(await offered()).toEqual(['day-1']);
    expect(await readTo()).toEqual(delivered(1));
  });
});
