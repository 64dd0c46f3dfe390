import { describe, expect, it } from 'vitest';
import { UNFILTERED } from '../../../src/core/feed-filters.js';
import { followFeed as followInLibrary } from '../../../src/library/follow-feed.js';
import { noResponseError } from '../../../src/service/errors/connection-errors.js';
import { findEnding } from '../../../src/sync/page/end-of-feed.js';
import type { FeedRequest } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { entryJson } from '../../support/entries.js';
import { filteredFeed, POLL_MS, withoutCursorAtEnd } from '../../support/filtered-feed.js';
import { NARROW_FILTERS } from '../../support/filters.js';
import { polledPage } from '../../support/pages.js';

const MINUTE = 60_000;

/** Refuses a cursor with other filters than it was issued with. */
const boundWith =
  (refusal: Error) =>
  (place: number, _end: number, { filters, start }: FeedRequest) => {
    const wanted = filters.environment;
    const given = 'cursor' in start ? start.cursor.split('#')[1] : wanted;
    if (given !== wanted) throw refusal;
    return `${place}#${wanted}`;
  };
type Reading = [description: string, nextCursor: Parameters<typeof filteredFeed>[0]];
const REFUSALS = [
  ...['http_400', 'http_404', 'http_410', 'http_414', 'http_422', 'http_431'].map(
    (kind) => new ModelFailure(kind, 'hold'),
  ),
  noResponseError('https://service.test', 'ECONNRESET'),
];

describe.each<Reading>([
  ...REFUSALS.map<Reading>((refusal) => [`cursors are bound to their filters (${refusal.kind})`, boundWith(refusal)]),
  ['the last page has no cursor', withoutCursorAtEnd],
])('when %s', (_, nextCursor) => {
  it.each([0, 1, 2, 3, 5, 6, 11])('finds the end of a feed of %i runs', async (count) => {
    const { deliver, follow, feed, lagMs, store } = filteredFeed(nextCursor);
    deliver(count);
    await follow(MINUTE);
    expect(feed()?.endReachedAt).toEqual(expect.any(Number));
    expect(lagMs()).toBeLessThan(3 * POLL_MS);
    expect(store.rows.size).toBe(count - Math.floor((count + 1) / 3));
  });

  it('finishes a full pass', async () => {
    const { deliver, follow, store } = filteredFeed(nextCursor);
    deliver(7);
    await follow(10 * MINUTE, MINUTE);
    expect(await store.readLastPass('default', 'full')).toMatchObject({ completedUntil: expect.any(Date) });
  });

  it('continues when filters hide all new runs', async () => {
    const { clock, deliver, follow, lagMs, store } = filteredFeed(nextCursor);
    deliver(1);
    const following = follow(2 * MINUTE);
    await clock.advance(MINUTE);
    deliver(1); // of the test environment
    await clock.advance(MINUTE / 2);
    expect(lagMs()).toBeLessThan(3 * POLL_MS);
    deliver(1);
    await following;
    expect(store.rows.size).toBe(2);
    expect(lagMs()).toBeLessThan(3 * POLL_MS);
  });
});

it('restores the page limit after a page was too large, although filters shorten all pages', async () => {
  const { deliver, follow, service, store } = filteredFeed(boundWith(new ModelFailure('http_400', 'hold')), 10);
  const asSent = service.readPage.bind(service);
  let tooLarge = 3;
  service.readPage = async (request, signal) => {
    tooLarge -= 1;
    if (tooLarge >= 0) throw new ModelFailure('too_large', 'hold');
    return asSent(request, signal);
  };
  deliver(300, 2);
  await follow(2 * MINUTE);
  expect(store.rows.size).toBe(150);
  const limits = service.requests.map((request) => (typeof request === 'string' ? 0 : request.limit));
  expect(limits[0]).toBe(1);
  expect(Math.max(...limits)).toBe(10);
});

it('does not claim the end for an empty page that was requested by time', async () => {
  const page = polledPage({ at: { cursor: null, since: new Date(0) }, next: '5' });
  const ending = await findEnding(page, null, UNFILTERED, new ModelService(), new AbortController().signal);
  expect(ending).toEqual({ claim: 'no', isUnclear: false, possibleEnd: null });
});

it.each(NARROW_FILTERS)('does not claim the end for an empty page when filters hide a run: %s', async (_, filters) => {
  const service = new ModelService();
  service.feed.push(entryJson(), entryJson({ scanId: 'hidden' }));
  const page = polledPage({ at: { cursor: '0', since: null }, next: '2' });
  const ending = await findEnding(page, null, filters, service, new AbortController().signal);
  expect(ending).toEqual({ claim: 'no', isUnclear: false, possibleEnd: null });
  expect(service.requests).toMatchObject([{ filters: UNFILTERED }]);
});

it('does not claim the end when the cursor is missing in the middle of the feed', async () => {
  const { deliver, follow, feed, store } = filteredFeed((place, end) => (place > 3 && place < end ? null : `${place}`));
  deliver(300, Number.POSITIVE_INFINITY);
  await follow(MINUTE);
  expect(store.rows.size).toBeGreaterThan(2);
  expect(feed()?.endReachedAt).toBeNull();
});

it('keeps the lag low when runs are delivered during every poll and the last page has no cursor', async () => {
  const { clock, deliver, follow, lagMs, store } = filteredFeed(withoutCursorAtEnd, 200);
  deliver(1);
  const following = follow(5 * MINUTE);
  for (const _ of Array.from({ length: 20 })) {
    await clock.advance(POLL_MS);
    deliver(3);
  }
  expect(lagMs()).toBeLessThan(3 * POLL_MS);
  await following;
  expect(store.rows.size).toBe(41);
});

describe('the end of a feed whose cursors are bound to their filters', () => {
  const followed = async (nextCursor: Parameters<typeof filteredFeed>[0]) => {
    let warnings = 0;
    const feed = filteredFeed(nextCursor, 3, {
      endHidden: () => {
        warnings += 1;
      },
    });
    feed.deliver(5);
    await feed.follow(5 * MINUTE);
    expect(feed.store.rows.size).toBe(3);
    return { warnings, endReachedAt: feed.feed()?.endReachedAt, completeAsOf: feed.feed()?.completeAsOf };
  };
  const bound = boundWith(new ModelFailure('http_400', 'hold'));
  const polls: number[] = [];
  it.each<readonly [string, Parameters<typeof filteredFeed>[0]]>([
    ['change with every poll', (place, end, request) => `${bound(place, end, request)}#${polls.push(place)}`],
    [
      'are missing at the end',
      (place, end, request) => {
        const cursor = bound(place, end, request);
        return place < end ? cursor : null;
      },
    ],
  ])('is reported once as not recognized, and never claimed, when they %s', async (_, nextCursor) => {
    expect(await followed(nextCursor)).toEqual({ warnings: 1, endReachedAt: null, completeAsOf: null });
  });

  it('is recognized without a warning when they do not move', async () => {
    expect(await followed(bound)).toMatchObject({ warnings: 0, endReachedAt: expect.any(Number) });
  });
});

it('does not report a stuck feed when the last page has no cursor', async () => {
  const { clock, deliver, follow, feed } = filteredFeed(withoutCursorAtEnd);
  deliver(2);
  const following = follow(MINUTE);
  await clock.advance(2_000);
  expect(feed()).toMatchObject({ stuckSince: null, endReachedAt: null });
  await following;
  expect(feed()).toMatchObject({ stuckSince: null, endReachedAt: expect.any(Number) });
});

it('stores the entries of a page when the request that would show whether it is the end fails', async () => {
  const { clock, deliver, follow, feed, service, store } = filteredFeed(withoutCursorAtEnd);
  const asSent = service.readPage.bind(service);
  let failing = false;
  service.readPage = async (request, signal) => {
    if (failing && request.filters.environment === 'all') throw new ModelFailure('timeout', 'retry');
    return asSent(request, signal);
  };
  deliver(1);
  const following = follow(2 * MINUTE);
  await clock.advance(POLL_MS / 2); // the first look at the dead end
  failing = true;
  deliver(1, 1);
  await clock.advance(MINUTE);
  expect(store.rows.size).toBe(2);
  expect(feed()?.endReachedAt).toBeNull();
  failing = false;
  await following;
  expect(feed()?.endReachedAt).toEqual(expect.any(Number));
});

it('claims the end although every second request that would show it fails', async () => {
  const { deliver, follow, feed, service } = filteredFeed(withoutCursorAtEnd);
  const asSent = service.readPage.bind(service);
  let shown = 0;
  service.readPage = async (request, signal) => {
    if (request.filters.environment === 'all' && shown++ % 2 === 1) throw new ModelFailure('timeout', 'retry');
    return asSent(request, signal);
  };
  deliver(1);
  await follow(MINUTE);
  expect(feed()?.endReachedAt).toEqual(expect.any(Number));
});

describe('when the database loses the entries of the last page before its second look', () => {
  it('stores them again without claiming the end of the feed', async () => {
    const { deliver, follow, feed, store } = filteredFeed(withoutCursorAtEnd);
    deliver(2, 1);
    const looks: { stored: number; endClaimed: boolean }[] = [];
    const commit = store.commitPage.bind(store);
    store.commitPage = async (page) => {
      if (page.freshness.end !== 'no' && looks.length === 0) store.rows.clear();
      const outcome = await commit(page);
      if (page.freshness.end !== 'no' && outcome.kind === 'committed')
        looks.push({ stored: store.rows.size, endClaimed: outcome.endClaimed });
      return outcome;
    };
    await follow(MINUTE);
    expect(feed()?.endReachedAt).toEqual(expect.any(Number));
    expect(looks.slice(0, 2)).toEqual([
      { stored: 2, endClaimed: false },
      { stored: 2, endClaimed: true },
    ]);
  });

  it('stores them again without ending a backfill', async () => {
    const { clock, deliver, follow, store } = filteredFeed(withoutCursorAtEnd);
    deliver(2, 1);
    const following = follow(2 * MINUTE);
    await clock.advance(MINUTE);
    store.requestBackfill(null, new Date(clock.now()));
    const looks: { stored: number; endClaimed: boolean }[] = [];
    const commit = store.commitPass.bind(store);
    store.commitPass = async (page) => {
      if (page.end !== 'no' && looks.length === 0) store.rows.clear();
      const outcome = await commit(page);
      if (page.end !== 'no' && outcome.kind === 'committed')
        looks.push({ stored: store.rows.size, endClaimed: outcome.endClaimed });
      return outcome;
    };
    await following;
    expect(looks).toEqual([
      { stored: 2, endClaimed: false },
      { stored: 2, endClaimed: true },
    ]);
  });
});

it('ends the iteration of a library when the last page has no cursor', async () => {
  const { clock, deliver, service } = filteredFeed(withoutCursorAtEnd);
  deliver(5);
  const pages: { entries: number; atEnd: boolean }[] = [];
  const read = async () => {
    for await (const { entries, atEnd } of followInLibrary(service, { clock, untilEnd: true, limit: 3 })) {
      pages.push({ entries: entries.length, atEnd });
    }
  };
  await clock.run(read());
  expect(pages).toEqual([
    { entries: 2, atEnd: false },
    { entries: 1, atEnd: false },
    { entries: 0, atEnd: true },
  ]);
});
