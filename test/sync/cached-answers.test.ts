import { expect, it } from 'vitest';
import { UNFILTERED } from '../../src/core/feed-filters.js';
import { findEnding } from '../../src/sync/page/end-of-feed.js';
import { walkFeed } from '../../src/sync/page/walk-feed.js';
import type { AnsweringCache, RawPage } from '../../src/sync/ports/index.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from '../support/engine.js';
import { entryJson, pageJson } from '../support/entries.js';
import { DEFAULT_FILTERS } from '../support/filters.js';
import { startFollowing } from '../support/follow-for.js';
import { polledPage, rawPage } from '../support/pages.js';
import { VirtualClock } from '../support/virtual-clock.js';

const { signal } = new AbortController();
const cacheOf = (ageMs: number) => ({ evidence: `Age: ${ageMs / 1000}`, name: null });

/** What a page shows of a cache that has kept it for this time: none within the first second, when its age is 0. */
function shownBy(ageMs: number) {
  const age = Math.floor(ageMs / 1000);
  return { ageMs: (age + 1) * 1000, cache: age === 0 ? null : cacheOf(age * 1000) };
}

/** A service behind a cache that answers a repeated request from its memory for a time. */
function cached(
  service: ModelService,
  clock: VirtualClock,
  maxAgeMs: number,
): Pick<ModelService, 'readPage' | 'readRun'> {
  const known = new Map<string, { page: RawPage; at: number }>();
  return {
    readRun: service.readRun.bind(service),
    readPage: async (request, until) => {
      const key = JSON.stringify([request.start, request.limit, request.filters]);
      const found = known.get(key);
      const ageMs = clock.monotonic() - (found?.at ?? Number.NEGATIVE_INFINITY);
      if (found !== undefined && ageMs < maxAgeMs) return { ...found.page, ...shownBy(ageMs) };
      const page = await service.readPage(request, until);
      known.set(key, { page, at: clock.monotonic() });
      return page;
    },
  };
}

it.each([
  [60_000, 10_000],
  [2_000, 300],
])(
  'never claims that data is complete which a cache hides for %i ms, polling every %i ms',
  async (maxAgeMs, pollIntervalMs) => {
    const clock = new VirtualClock();
    const service = new ModelService();
    const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
    let completeAsOf = 0;
    const observer = silentObserver({ freshness: (read) => (completeAsOf = read.dataCompleteAsOf?.getTime() ?? 0) });
    const stop = startFollowing(clock, { service: cached(service, clock, maxAgeMs), store, observer, pollIntervalMs });
    await clock.advance(10_000);
    for (let n = 0; n < 5; n += 1) {
      const deliveredAt = clock.now();
      service.feed.push(entryJson({ scanId: `scan-${n}`, deliveredAt: new Date(deliveredAt).toISOString() }));
      for (let waitedMs = 0; waitedMs < 1.5 * maxAgeMs; waitedMs += pollIntervalMs) {
        await clock.advance(pollIntervalMs);
        if (!store.rows.has(`scan-${n}`)) expect(completeAsOf).toBeLessThanOrEqual(deliveredAt);
      }
      expect(store.rows.has(`scan-${n}`)).toBe(true);
    }
    expect(completeAsOf).toBeGreaterThan(clock.now() - maxAgeMs - 20_000);
    await stop();
  },
);

const read = {
  filters: DEFAULT_FILTERS,
  markdown: false,
  pageSize: 10,
} as const;

it.each([
  ['that hide nothing', UNFILTERED],
  ['that may hide runs', DEFAULT_FILTERS],
])('is not sure of an end without a cursor that a cache repeats, with filters %s', async (_, filters) => {
  const clock = new VirtualClock();
  let cache: AnsweringCache | null = null;
  const service = { readPage: async () => ({ ...rawPage(pageJson([entryJson()], '')), nextCursor: null, cache }) };
  const walk = walkFeed({ cursor: null, since: null }, { service, read: { ...read, filters }, clock }, signal);
  const steps = [await walk(), await walk()];
  cache = cacheOf(5_000);
  steps.push(await walk());
  cache = null;
  steps.push(await walk(), await walk());
  expect(steps.map(({ next }) => next)).toEqual(['unclear', 'end', 'unclear', 'end', 'end']);
});

it('is not sure of an end that only a cache confirms', async () => {
  const page = polledPage({ at: { cursor: 'a', since: null }, next: 'b' });
  const service = { readPage: async () => ({ ...rawPage(pageJson([])), cache: cacheOf(5_000) }) };
  expect(await findEnding(page, null, read.filters, service, signal)).toMatchObject({ claim: 'no', isUnclear: true });
});
