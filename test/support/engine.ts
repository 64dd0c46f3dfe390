import type { Clock } from '../../src/core/clock.js';
import type { FeedContext } from '../../src/sync/context.js';
import { createLeaseRounds } from '../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../src/sync/lease/process-leases.js';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import { createPageLimit } from '../../src/sync/page/page-limit.js';
import type { FeedService, FeedStore, SyncObserver } from '../../src/sync/ports/index.js';
import { createResultLoader } from '../../src/sync/results/resolve-truncated.js';
import { captureErrorLeaks } from './canaries/capture-leaks.js';
import { DEFAULT_FILTERS } from './filters.js';

/** The engine as the daemon wires it, with the parts that a test chooses. */
export function engineContext(
  parts: { service: FeedService; store: FeedStore; clock: Clock } & Partial<FeedContext>,
): FeedContext {
  const { service, store, clock, holder = 'test-process', leaseTtlMs = 30_000 } = parts;
  const read = { filters: DEFAULT_FILTERS, markdown: false, pageSize: 10, ...parts.read };
  const budget = parts.budget ?? createMemoryBudget(64 * 1024 * 1024);
  return {
    observer: silentObserver(),
    loader: createResultLoader({
      service,
      store,
      clock,
      budget,
      markdown: read.markdown,
      concurrency: 4,
      keptDays: null,
    }),
    leases: createLeaseRounds(createProcessLeases({ clock, holder, leaseTtlMs }), {
      name: 'scanfeed',
      store,
      ready: async () => {},
    }),
    identity: {
      name: 'default',
      baseUrl: 'https://service.test/v1',
      filters: DEFAULT_FILTERS,
      keepHistory: true,
      start: 'beginning',
    },
    holder,
    isDead: () => false,
    leaseTtlMs,
    pollIntervalMs: 5_000,
    pendingRetryMs: 30_000,
    maxResultCommits: 2,
    reconcile: { intervalMs: null, windowMs: 2 * 3_600_000, fullIntervalMs: null },
    pageLimit: createPageLimit(read.pageSize, budget.bytes),
    maxHeldPages: 3,
    maxPageCommits: 2,
    stepMs: 60_000,
    ...parts,
    budget,
    read,
  };
}

/** An observer that does nothing, but for what a test wants to see. */
export function silentObserver(over: Partial<SyncObserver> = {}): SyncObserver {
  return {
    ticked: () => {},
    polled: () => {},
    committed: () => {},
    pageStored: () => {},
    freshness: () => {},
    truncated: () => {},
    recovered: () => {},
    adopted: () => {},
    status: () => {},
    reconciled: () => {},
    reading: () => {},
    passFinished: () => {},
    filtersChanged: () => {},
    pageLimited: () => {},
    cursorReset: () => {},
    stuck: () => {},
    endHidden: () => {},
    leading: () => {},
    caughtUp: () => {},
    ...over,
    failed: (stage, error, pauseMs) => {
      captureErrorLeaks(`a failure of ${stage}`, error);
      over.failed?.(stage, error, pauseMs);
    },
  };
}
