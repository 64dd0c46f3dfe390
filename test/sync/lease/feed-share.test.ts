import { describe, expect, it } from 'vitest';
import { FeedShare } from '../../../src/sync/lease/feed-share.js';

const TTL_MS = 10_000;
const ROUND_MS = TTL_MS / 3;
const SELF = 'process-0';

/** Living processes that follow as many feeds each. */
function processesWith(feeds: number, ...names: readonly string[]): ReadonlyMap<string, number> {
  return new Map(names.map((name) => [name, feeds]));
}

const processNames = (count: number) => Array.from({ length: count }, (_, n) => `process-${n}`);

/** A process that follows feeds 0 to n - 1, as others do. */
function processWith(feeds: number, processes: number) {
  const share = new FeedShare(TTL_MS, ROUND_MS);
  const names = Array.from({ length: feeds }, (_, n) => `feed-${n}`);
  for (const name of names) share.follow(name);
  const live = (...living: readonly string[]) => share.setProcesses(processesWith(feeds, ...living), SELF);
  live(...processNames(processes));
  /** Takes as many free feeds as it may. Returns those that it did not lead before. */
  const takeAll = (now: number) =>
    names.filter((name) => {
      if (share.leads(name)) return false;
      share.recordRead(name, true, now);
      return share.reserve(name, now);
    });
  const surplus = (now: number) => names.filter((name) => share.isSurplus(name, now));
  return { share, names, live, takeAll, surplus };
}

/** Returns how many free feeds a process takes at once, of those that it follows beside others. */
function taken(feeds: number, others: readonly number[]): number {
  const share = new FeedShare(TTL_MS, ROUND_MS);
  const names = Array.from({ length: feeds }, (_, n) => `feed-${n}`);
  for (const name of names) share.follow(name);
  share.setProcesses(new Map(others.map((followed, n) => [`other-${n}`, followed])), SELF);
  return names.filter((name) => share.reserve(name, 0)).length;
}

describe('the share of a process', () => {
  it.each([
    [1, 1, 1],
    [1, 5, 1],
    [10, 1, 10],
    [10, 2, 5],
    [10, 3, 4],
    [1_000, 3, 334],
  ])('of %i feeds that %i processes follow is %i', (feeds, processes, share) => {
    expect(taken(feeds, Array(processes - 1).fill(feeds))).toBe(share);
  });

  it.each([
    ['is hardly less when the other process follows few feeds', 100, [1], 100],
    ['is two thirds when the other process follows half as many feeds', 12, [6], 8],
    ['is not less when the other process follows more feeds', 10, [1_000], 5],
    ['is everything when the other process follows none', 10, [0], 10],
    ['is at least one feed, however many processes there are', 1, Array(50).fill(1_000), 1],
    ['counts each other process', 12, [12, 6, 6], 4],
  ])('%s', (_, feeds, others, share) => {
    expect(taken(feeds, others)).toBe(share);
  });
});

describe('a process', () => {
  it('takes free feeds up to its share', () => {
    const { takeAll } = processWith(10, 3);
    expect(takeAll(0)).toEqual(['feed-0', 'feed-1', 'feed-2', 'feed-3']);
  });

  it('takes another feed when it has released one', () => {
    const { share, takeAll } = processWith(4, 2);
    takeAll(0);
    share.release('feed-0');
    expect(share.reserve('feed-2', 0)).toBe(true);
    expect(share.reserve('feed-3', 0)).toBe(false);
  });

  it('takes a feed beyond its share only when that was free for the time to live of a lease, without a pause', () => {
    const { share, takeAll } = processWith(4, 2);
    takeAll(0);
    share.recordRead('feed-3', false, 5_000);
    share.recordRead('feed-3', true, 6_000);
    expect(share.reserve('feed-3', TTL_MS)).toBe(false);
    expect(share.reserve('feed-2', TTL_MS - 1)).toBe(false);
    expect(share.reserve('feed-2', TTL_MS)).toBe(true);
  });

  it('does not take another feed at once when it could not have one beyond its share', () => {
    const { share, takeAll } = processWith(4, 2);
    takeAll(0);
    share.recordRead('feed-3', false, 5_000);
    share.recordRead('feed-3', true, 6_000);
    expect(share.reserve('feed-2', TTL_MS)).toBe(true);
    share.release('feed-2');
    expect(share.reserve('feed-3', TTL_MS)).toBe(false);
  });

  it('does not take a feed beyond its share when it has not read yet whether that is free', () => {
    const { share } = processWith(2, 2);
    expect(share.reserve('feed-0', 100 * TTL_MS)).toBe(true);
    expect(share.reserve('feed-1', 100 * TTL_MS)).toBe(false);
  });

  it('waits for other processes to take a free feed when the set of processes has just changed', () => {
    const { live, takeAll } = processWith(6, 3);
    expect(takeAll(0)).toEqual(['feed-0', 'feed-1']);
    live('process-0', 'process-1');
    expect(takeAll(TTL_MS)).toEqual(['feed-2']);
    expect(takeAll(2 * TTL_MS)).toEqual(['feed-3', 'feed-4', 'feed-5']);
  });

  it('takes more feeds when another process follows fewer than before', () => {
    const { share, takeAll } = processWith(6, 2);
    expect(takeAll(0)).toHaveLength(3);
    share.setProcesses(new Map([...processesWith(6, SELF), ...processesWith(1, 'process-1')]), SELF);
    expect(takeAll(0)).toHaveLength(3);
  });

  it('takes the feeds that name it, whatever its share is, and gives some back', () => {
    const { share, names, surplus } = processWith(4, 4);
    for (const name of names) share.reserveOwn(name);
    expect(names.map((name) => share.leads(name))).toEqual([true, true, true, true]);
    expect(surplus(0)).toEqual(['feed-3']);
  });

  it('gives back a tenth of its surplus in each round, those taken last, when another process joins', () => {
    const { share, names, live, takeAll, surplus } = processWith(100, 1);
    takeAll(0);
    expect(surplus(0)).toEqual([]);
    live('process-0', 'process-1');
    expect(surplus(ROUND_MS)).toEqual(names.slice(95));
    for (const name of names.slice(95)) share.release(name);
    expect(surplus(ROUND_MS + 1)).toEqual([]);
    expect(surplus(2 * ROUND_MS)).toEqual(names.slice(90, 95));
  });

  it('does not give a feed back again when it has taken it again in the same round', () => {
    const { share, live, takeAll, surplus } = processWith(2, 1);
    takeAll(0);
    live('process-0', 'process-1');
    expect(surplus(ROUND_MS)).toEqual(['feed-1']);
    share.release('feed-1');
    live('process-0');
    expect(share.reserve('feed-1', ROUND_MS + 1)).toBe(true);
    expect(surplus(ROUND_MS + 2)).toEqual([]);
  });

  it('gives nothing back when the other process has ended before it could', () => {
    const { live, takeAll, surplus } = processWith(2, 1);
    takeAll(0);
    live('process-0', 'process-1');
    expect(surplus(ROUND_MS)).toEqual(['feed-1']);
    live('process-0');
    expect(surplus(ROUND_MS + 1)).toEqual([]);
  });

  it('keeps feeds that the others did not take, until there is another process', () => {
    const { live, takeAll, surplus } = processWith(4, 2);
    takeAll(0);
    takeAll(TTL_MS);
    expect(surplus(TTL_MS)).toEqual([]);
    live('process-0', 'process-2');
    expect(surplus(TTL_MS + ROUND_MS)).toHaveLength(1);
  });

  it('does not count the time in which it did not follow a feed as time in which others could have taken it', () => {
    const { share } = processWith(2, 2);
    share.unfollow('feed-1');
    share.recordRead('feed-1', true, 0); // by a read that began before
    share.follow('feed-1');
    share.recordRead('feed-1', true, TTL_MS);
    expect(share.freeForMs('feed-1', TTL_MS)).toBe(0);
  });

  it('keeps a single feed, however many processes there are', () => {
    const { live, takeAll, surplus } = processWith(1, 1);
    takeAll(0);
    live(...processNames(5));
    expect(surplus(0)).toEqual([]);
  });

  it('keeps its feeds when another process joins that follows none of them', () => {
    const { share, takeAll, surplus } = processWith(10, 1);
    takeAll(0);
    share.setProcesses(new Map([...processesWith(10, SELF), ...processesWith(1, 'process-1')]), SELF);
    expect(surplus(0)).toEqual([]);
  });
});
