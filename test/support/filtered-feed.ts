import type { FeedRequest, FeedStart, RawPage, SyncObserver } from '../../src/sync/ports/index.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from './engine.js';
import { entryJson, pageJson } from './entries.js';
import { followFor } from './follow-for.js';
import { rawPage } from './pages.js';
import { VirtualClock } from './virtual-clock.js';

export const POLL_MS = 5_000;

export const withoutCursorAtEnd = (place: number, end: number) => (place < end ? `${place}` : null);

/** A feed of runs, of which every third is one of the test environment, at most three looked at for each page. */
export function filteredFeed(
  nextCursor: (place: number, end: number, request: FeedRequest) => string | null,
  pageSize = 3,
  observed: Partial<SyncObserver> = {},
) {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const service = new ModelService();
  const runs: { json: string; environment: string }[] = [];
  const deliver = (count: number, testEvery = 3) => {
    for (const _ of Array.from({ length: count })) {
      const environment = runs.length % testEvery === 1 ? 'test' : 'prod';
      const json = entryJson({
        scanId: `scan-${runs.length}`,
        environment,
        deliveredAt: new Date(clock.now()).toISOString(),
      });
      runs.push({ json, environment });
    }
  };
  const placeOf = (start: FeedStart) => ('cursor' in start ? Number(start.cursor.split('#')[0]) : 0);
  service.readPage = async (request, signal): Promise<RawPage> => {
    service.requests.push(request);
    await clock.sleep(10, signal);
    const { start, filters, limit } = request;
    const from = placeOf(start);
    const looked = runs.slice(from, from + limit);
    const listed = looked.filter(({ environment }) => filters.environment === 'all' || environment === 'prod');
    const next = nextCursor(from + looked.length, runs.length, request);
    return rawPage(
      pageJson(
        listed.map(({ json }) => json),
        next,
      ),
    );
  };
  const follow = async (ms: number, fullIntervalMs: number | null = null) => {
    const reconcile = { intervalMs: null, windowMs: 60_000, fullIntervalMs };
    await followFor(ms, clock, {
      service,
      store,
      reconcile,
      pageSize,
      pollIntervalMs: POLL_MS,
      observer: silentObserver(observed),
    });
  };
  const feed = () => store.feeds.get('default');
  const lagMs = () => clock.now() - (feed()?.completeAsOf ?? Number.NaN);
  return { clock, store, service, deliver, follow, feed, lagMs };
}
