import { expect, it } from 'vitest';
import type { FeedRequest, FeedStart, RawPage } from '../../../src/sync/ports/index.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { silentObserver } from '../../support/engine.js';
import { entryJson, type Fields, pageJson } from '../../support/entries.js';
import { followFor, startFollowing } from '../../support/follow-for.js';
import { rawPage } from '../../support/pages.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
const MINUTES = 10;

/** Follows a feed whose pages `answer` gives, for ten minutes, with a store that takes so long for a commit. */
async function follow(
  answer: (start: FeedStart, clock: VirtualClock) => RawPage,
  intervalMs: number | null,
  commitMs = 0,
) {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const service = new ModelService();
  const asked: FeedStart[] = [];
  service.readPage = async ({ start }: FeedRequest, signal) => {
    asked.push(start);
    await clock.sleep(50, signal);
    return answer(start, clock);
  };
  const commitPage = store.commitPage.bind(store);
  store.commitPage = async (commit) => {
    await clock.sleep(commitMs, new AbortController().signal);
    return commitPage(commit);
  };
  const reconcile = { intervalMs, windowMs: 2 * HOUR_MS, fullIntervalMs: null };
  await followFor(MINUTES * 60_000, clock, { service, store, reconcile });
  return { asked, store };
}

const cursorOf = (start: FeedStart) => ('cursor' in start ? start.cursor : null);
const page = (cursor: string, over: Fields = {}) => rawPage(pageJson([entryJson(over)], cursor));
const circling = (start: FeedStart, over: Fields = {}) => page(cursorOf(start) === 'a' ? 'b' : 'a', over);

it('polls at the interval of an idle feed when cursors go in circles', async () => {
  const { asked } = await follow((start) => circling(start), null);
  // A poll interval of 5 s, and up to three pages ahead.
  expect(asked.length).toBeLessThanOrEqual(MINUTES * 12 * 4);
});

it('does not claim the end when a whole circle is committed at once', async () => {
  const { store } = await follow((start) => circling(start), null, 1_000);
  expect(store.feeds.get('default')?.endReachedAt).toBeNull();
});

it('pauses a pass without finishing it when its cursors go in circles', async () => {
  const { asked, store } = await follow((start, clock) => {
    if ('beginning' in start) return page('end');
    if (cursorOf(start) === 'end') return rawPage(pageJson([], 'end'));
    return circling(start, { deliveredAt: new Date(clock.now() - HOUR_MS).toISOString() });
  }, 60_000);
  const swept = asked.filter((start) => ['a', 'b'].includes(cursorOf(start) ?? ''));
  expect(swept.length).toBeGreaterThan(0);
  expect(swept.length).toBeLessThanOrEqual(MINUTES * 4);
  expect(store.latestPass('recent')?.finishedAt).toBeNull();
});

it('does not report a circle when cursors are read again after the database lost commits', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const service = new ModelService();
  service.feed.push(...Array.from({ length: 60 }, (_, n) => entryJson({ scanId: `scan-${n}` })));
  const stuckReports: boolean[] = [];
  const observer = silentObserver({ stuck: (stuck) => stuckReports.push(stuck) });
  const stop = startFollowing(clock, { service, store, observer });
  await clock.advance(30_000);
  const feed = store.feeds.get('default');
  if (feed === undefined) throw new Error('nothing was read');
  expect(feed.cursor).toBe('60');
  feed.cursor = '20';
  await clock.advance(30_000);
  await stop();
  expect(feed.cursor).toBe('60');
  expect(stuckReports).toEqual([]);
});

it('forgets the cursors of a feed at its end, since a thousand idle feeds would keep them in memory', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const service = new ModelService();
  const empty = (cursor: string) => rawPage(pageJson([], cursor));
  // The feed ends after its second page. Then its first cursor returns.
  const answers = [page('a'), page('b'), empty('b'), page('c'), page('a')];
  service.readPage = async () => answers.shift() ?? empty('a');
  const outcomes: string[] = [];
  const observer = silentObserver({ polled: (outcome) => outcomes.push(outcome) });
  await followFor(20_000, clock, { service, store, observer });
  expect(outcomes.slice(0, 6)).toEqual(['entries', 'entries', 'end', 'entries', 'entries', 'end']);
});
