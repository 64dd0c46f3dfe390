import { describe, expect, it } from 'vitest';
import { followFeed as followInLibrary } from '../../../src/library/follow-feed.js';
import type { FeedRequest } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { filteredFeed, POLL_MS, withoutCursorAtEnd } from '../../support/filtered-feed.js';
import { rawPage } from '../../support/pages.js';

const MINUTE = 60_000;

/** Cursors of a service that leaves out the next ones of the page at place 3 of the filtered feed. */
function missingCursors(missing: number) {
  const cursors = { missing, nextCursor };
  function nextCursor(place: number, _end: number, { start, filters }: FeedRequest): string | null {
    const isPage = 'cursor' in start && start.cursor === '3' && filters.environment === 'prod';
    if (!isPage || cursors.missing === 0) return `${place}`;
    cursors.missing -= 1;
    return null;
  }
  return cursors;
}

describe('when the cursor is missing in the middle of the feed and filters shorten its page', () => {
  it('does not claim the end when it stays missing', async () => {
    const { deliver, follow, feed, store } = filteredFeed((place, end) =>
      place > 3 && place < end ? null : `${place}`,
    );
    deliver(300);
    await follow(5 * MINUTE);
    expect(store.rows.size).toBeGreaterThan(2);
    expect(feed()?.endReachedAt).toBeNull();
  });

  it('does not claim the end when it is missing twice', async () => {
    const cursors = missingCursors(2);
    const { deliver, follow, store } = filteredFeed(cursors.nextCursor);
    const storedAtEnd = new Set<number>();
    const commit = store.commitPage.bind(store);
    store.commitPage = async (page) => {
      const outcome = await commit(page);
      if (outcome.kind === 'committed' && outcome.endClaimed) storedAtEnd.add(store.rows.size);
      return outcome;
    };
    deliver(200);
    await follow(MINUTE);
    expect(cursors.missing).toBe(0);
    expect([...storedAtEnd]).toEqual([133]);
  });

  it('does not finish a pass when it is missing twice', async () => {
    const cursors = missingCursors(0);
    const { clock, deliver, follow, feed, store } = filteredFeed(cursors.nextCursor);
    const finishedAt = new Set<string | null>();
    const commit = store.commitPass.bind(store);
    store.commitPass = async (page) => {
      const outcome = await commit(page);
      if (outcome.kind === 'committed' && outcome.endClaimed) finishedAt.add(page.to);
      return outcome;
    };
    deliver(30);
    const following = follow(10 * MINUTE, MINUTE);
    await clock.advance(MINUTE / 2);
    expect(feed()?.endReachedAt).toEqual(expect.any(Number));
    cursors.missing = 2;
    await following;
    expect(cursors.missing).toBe(0);
    expect([...finishedAt]).toEqual(['30']);
  });

  it('does not end an iteration of the library when it is missing twice', async () => {
    const cursors = missingCursors(2);
    const { clock, deliver, service } = filteredFeed(cursors.nextCursor);
    deliver(30);
    const scanIds = new Set<string>();
    const read = async () => {
      for await (const { entries } of followInLibrary(service, { clock, untilEnd: true, limit: 3 })) {
        for (const { scanId } of entries) scanIds.add(scanId);
      }
    };
    await clock.run(read());
    expect(cursors.missing).toBe(0);
    expect(scanIds.size).toBe(20);
  });
});

it('finishes a pass only when a second request for its last position returns nothing new', async () => {
  const { clock, deliver, follow, store } = filteredFeed(withoutCursorAtEnd, 200);
  const commits: { at: number; finished: boolean; inserted: number }[] = [];
  const commit = store.commitPass.bind(store);
  store.commitPass = async (page) => {
    // The run is new to the first three pages.
    if (commits.length < 3) store.rows.clear();
    const at = clock.now();
    const outcome = await commit(page);
    if (outcome.kind === 'committed')
      commits.push({ at, finished: outcome.endClaimed, inserted: outcome.counts.inserted });
    return outcome;
  };
  deliver(1);
  await follow(10 * MINUTE, MINUTE);
  expect(commits.slice(0, 4)).toMatchObject([
    ...[1, 1, 1].map((inserted) => ({ inserted, finished: false })),
    { inserted: 0, finished: true },
  ]);
  const pauses = commits.slice(0, 3).map(({ at }, index) => (commits[index + 1]?.at ?? 0) - at);
  expect(Math.min(...pauses)).toBeGreaterThan(POLL_MS);
});

it('claims the end only when a second request for its position returns no new unusable entry', async () => {
  const { service, store, follow } = filteredFeed(withoutCursorAtEnd);
  let polls = 0;
  service.readPage = async ({ filters }) => {
    if (filters.environment === 'prod') polls += 1;
    const unusable = polls < 2 ? [] : [entryJson({ scanId: 'unusable', status: 'odd' })];
    return rawPage(pageJson([entryJson(), ...unusable], null));
  };
  const pollsAtEnd = new Set<number>();
  const commit = store.commitPage.bind(store);
  store.commitPage = async (page) => {
    const outcome = await commit(page);
    if (outcome.kind === 'committed' && outcome.endClaimed) pollsAtEnd.add(polls);
    return outcome;
  };
  await follow(4 * POLL_MS);
  expect(store.quarantine.size).toBe(1);
  expect(Math.min(...pollsAtEnd)).toBe(3);
});

it('stores the last page when the service refuses requests without filters', async () => {
  const { deliver, follow, feed, store } = filteredFeed((place, end, { filters }) => {
    if (filters.environment === 'all') throw new ModelFailure('http_403', 'hold');
    return withoutCursorAtEnd(place, end);
  });
  deliver(5);
  await follow(MINUTE);
  expect(store.rows.size).toBe(3);
  expect(feed()?.endReachedAt).toBeNull();
});

it('finishes a backfill whose cursor was rejected when the last page has no cursor', async () => {
  const cursors = { issued: 0, rejectedUpTo: 0 };
  const { clock, deliver, follow, store } = filteredFeed((place, end, { start }) => {
    const isRejected = 'cursor' in start && Number(start.cursor.split('#')[1]) <= cursors.rejectedUpTo;
    if (isRejected) throw new ModelFailure('http_400', 'hold');
    cursors.issued += 1;
    return place < end ? `${place}#${cursors.issued}` : null;
  });
  for (let run = 0; run < 4; run += 1) {
    deliver(1, 1);
    await clock.advance(1_000);
  }
  const following = follow(10 * MINUTE);
  await clock.advance(MINUTE);
  const backfill = store.requestBackfill(null, new Date(clock.now()));
  while (backfill.cursor === null) await clock.advance(100);
  expect(backfill.finishedAt).toBeNull();
  cursors.rejectedUpTo = cursors.issued;
  await following;
  expect(backfill.finishedAt).toEqual(expect.any(Number));
});
