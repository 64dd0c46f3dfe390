import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { FeedContext } from '../../../src/sync/context.js';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import type { CheckedEntry } from '../../../src/sync/page/check-entries.js';
import { createPageLimit } from '../../../src/sync/page/page-limit.js';
import { prefetchPages } from '../../../src/sync/prefetch/prefetch-pages.js';
import type { ResultLoader } from '../../../src/sync/results/resolve-truncated.js';
import { createFailurePauses } from '../../../src/sync/retry/failure-pauses.js';
import { createWakeUp } from '../../../src/sync/waiting/wake-up.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { isCollected } from '../../support/collect-garbage.js';
import { engineContext } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { DEFAULT_FILTERS } from '../../support/filters.js';

/** A service with a feed of so many pages of ten entries: scan-0 to scan-9, and so on. */
function serviceOf(pages: number): ModelService {
  const service = new ModelService();
  for (let n = 0; n < pages * 10; n += 1) service.feed.push(entryJson({ scanId: `scan-${n}` }));
  return service;
}

/** Prefetches pages without joining them. */
function readingOf(service: ModelService, maxHeld = 20, over: Partial<FeedContext> = {}) {
  const context = engineContext({ clock: systemClock, service, store: new ModelStore(systemClock.monotonic) });
  const start = { cursor: null, since: null };
  const options = { priority: 'feed', maxHeld, maxJoined: 1, isLast: () => false } as const;
  const read = { filters: DEFAULT_FILTERS, markdown: false, limit: createPageLimit(10, context.budget.bytes) };
  const leader = { read, recovery: createFailurePauses(systemClock, {}), retryWakeUp: createWakeUp(systemClock) };
  return prefetchPages(start, null, options, { ...context, ...leader, ...over }, new AbortController().signal);
}

/** What is asked for and what is looked at, in this order, of a feed of so many pages of ten entries. */
async function readToTheEnd(pages: number): Promise<readonly string[]> {
  const events: string[] = [];
  const service = serviceOf(pages);
  const readPage = service.readPage.bind(service);
  service.readPage = async (request, signal) => {
    const from = 'cursor' in request.start ? Number(request.start.cursor) : 0;
    events.push(`ask ${from}`);
    const page = await readPage(request, signal);
    const [first, ...others] = page.items;
    if (first === undefined || first === null) return page;
    const watched = new Proxy(first, {
      get: (entry, name) => {
        if (events.at(-1) !== `check ${from}`) events.push(`check ${from}`);
        return Reflect.get(entry, name);
      },
    });
    return { ...page, items: [watched, ...others] };
  };
  const ahead = readingOf(service, 2);
  for (;;) {
    const page = await ahead.take();
    if (page === null) break;
    page.release();
  }
  ahead.close();
  return events;
}

describe('pages that are read ahead', () => {
  it('are checked after the next one is requested, so that no request waits for the check', async () => {
    expect(await readToTheEnd(2)).toEqual(['ask 0', 'ask 10', 'check 0', 'ask 20', 'check 10']);
  });

  it('keep their memory when reading is stopped after they were returned', async () => {
    const budget = createMemoryBudget(64 * 1024 * 1024);
    const ahead = readingOf(serviceOf(2), 2, { budget });
    const page = await ahead.take();
    ahead.stop();
    expect(page?.bytes).toBeGreaterThan(0);
    expect(budget.reservedBytes).toBe(page?.bytes);
    expect(await ahead.take()).toBeNull();
    ahead.close();
    expect(budget.reservedBytes).toBe(0);
  });

  it('are not returned when reading is stopped while they are completed', async () => {
    const ahead = readingOf(serviceOf(2), 20, { loader: { loadResults } as unknown as ResultLoader });
    async function loadResults(entries: readonly CheckedEntry[]) {
      ahead.stop();
      return entries;
    }
    expect(await ahead.take()).toBeNull();
  });
});

it('releases the parsed entries of a page once they are checked, since the memory budget does not count them', async () => {
  const service = serviceOf(1);
  const readPage = service.readPage.bind(service);
  let entry: WeakRef<object> | undefined;
  service.readPage = async (request, signal) => {
    const page = await readPage(request, signal);
    entry = new WeakRef(page.items[0] as object);
    return page;
  };
  const ahead = readingOf(service, 1);
  const page = await ahead.take();
  expect(await isCollected(entry)).toBe(true);
  expect(page?.monotonicTimeOf(new Date(0))).toBeLessThanOrEqual(page?.polledAt ?? 0); // the page itself is still held
  ahead.close();
});
