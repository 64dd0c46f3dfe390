import { describe, expect, it } from 'vitest';
import { createFeedShare, type FeedShare, shareOf } from '../../../src/sync/lease/feed-share.js';

const TTL_MS = 10_000;
const ROUND_MS = TTL_MS / 3;

const processNames = (count: number) => Array.from({ length: count }, (_, n) => `process-${n}`);

/** A process that follows feeds 0 to n - 1, and has taken as many as it may. */
function processWith(feeds: number, processes: number) {
  const share = createFeedShare(TTL_MS, ROUND_MS);
  const names = Array.from({ length: feeds }, (_, n) => `feed-${n}`);
  for (const name of names) share.follow(name);
  share.setProcesses(processNames(processes));
  const taken = new Set<string>();
  const takeAll = (now: number) =>
    names.filter((name) => {
      if (taken.has(name)) return false;
      share.recordCheck(name, true, now);
      return share.mayTake(name, now) && taken.add(name);
    });
  return { share, names, takeAll };
}

/** Returns the feeds to give back. */
const surplus = (share: FeedShare, names: readonly string[], now: number) =>
  names.filter((name) => share.isSurplus(name, now));

it.each([
  [1, 1, 1],
  [1, 5, 1],
  [10, 1, 10],
  [10, 2, 5],
  [10, 3, 4],
  [1_000, 3, 334],
])('of %i feeds, one of %i processes leads %i', (feeds, processes, share) => {
  expect(shareOf(feeds, processes)).toBe(share);
});

describe('a process', () => {
  it('takes free feeds up to its share', () => {
    const { takeAll } = processWith(10, 3);
    expect(takeAll(0)).toEqual(['feed-0', 'feed-1', 'feed-2', 'feed-3']);
  });

  it('takes more when a lease that it took is released', () => {
    const { share, takeAll } = processWith(4, 2);
    takeAll(0);
    share.release('feed-0');
    expect(share.mayTake('feed-2', 0)).toBe(true);
    expect(share.mayTake('feed-3', 0)).toBe(false);
  });

  it('takes a feed beyond its share only when that was free for the time to live of a lease, without a pause', () => {
    const { share, takeAll } = processWith(4, 2);
    takeAll(0);
    share.recordCheck('feed-3', false, 5_000);
    share.recordCheck('feed-3', true, 6_000);
    expect(share.mayTake('feed-3', TTL_MS)).toBe(false);
    expect(share.mayTake('feed-2', TTL_MS - 1)).toBe(false);
    expect(share.mayTake('feed-2', TTL_MS)).toBe(true);
  });

  it('waits for other processes to take a free feed when their share has just changed', () => {
    const { share, takeAll } = processWith(6, 3);
    expect(takeAll(0)).toEqual(['feed-0', 'feed-1']);
    share.setProcesses(processNames(2));
    expect(takeAll(TTL_MS)).toEqual(['feed-2']);
    expect(takeAll(2 * TTL_MS)).toEqual(['feed-3', 'feed-4', 'feed-5']);
  });

  it('takes all leases of its predecessor, whatever its share is', () => {
    const { share, names } = processWith(4, 4);
    for (const name of names) share.takeOwn(name);
    expect(surplus(share, names, 0)).toHaveLength(1);
  });

  it('gives back a tenth of its surplus in each round, those taken last, when another process joins', () => {
    const { share, names, takeAll } = processWith(100, 1);
    takeAll(0);
    expect(surplus(share, names, 0)).toEqual([]);
    share.setProcesses(processNames(2));
    expect(surplus(share, names, ROUND_MS)).toEqual(names.slice(-5));
    for (const name of names.slice(-5)) share.release(name);
    expect(surplus(share, names, ROUND_MS + 1)).toEqual([]);
    expect(surplus(share, names, 2 * ROUND_MS)).toEqual(names.slice(90, 95));
  });

  it('keeps feeds that the others did not take until there is another process', () => {
    const { share, names, takeAll } = processWith(4, 2);
    takeAll(0);
    takeAll(TTL_MS);
    expect(surplus(share, names, TTL_MS)).toEqual([]);
    share.setProcesses(['process-0', 'process-2']);
    expect(surplus(share, names, TTL_MS + ROUND_MS)).toHaveLength(1);
  });

  it('does not give a feed back again when it has taken it again in the same round', () => {
    const { share, names, takeAll } = processWith(2, 1);
    takeAll(0);
    share.setProcesses(processNames(2));
    expect(surplus(share, names, ROUND_MS)).toEqual(['feed-1']);
    share.release('feed-1');
    share.unfollow('feed-0');
    share.release('feed-0');
    expect(share.mayTake('feed-1', ROUND_MS)).toBe(true);
    expect(surplus(share, names, ROUND_MS + 1)).toEqual([]);
  });

  it('keeps a single feed, however many processes there are', () => {
    const { share, names, takeAll } = processWith(1, 1);
    takeAll(0);
    share.setProcesses(processNames(5));
    expect(surplus(share, names, ROUND_MS)).toEqual([]);
  });
});
