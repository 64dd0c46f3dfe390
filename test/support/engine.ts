import type { Clock } from '../../src/core/clock.js';
import type { FeedContext } from '../../src/sync/context.js';
import { createLeaseRounds, type LeaseSchema } from '../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../src/sync/lease/process-leases.js';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import { createPageLimit } from '../../src/sync/page/page-limit.js';
import type { FeedService, FeedStore, SyncObserver } from '../../src/sync/ports/index.js';
import { createResultLoader } from '../../src/sync/results/resolve-truncated.js';
import { captureErrorLeaks } from './canaries/capture-leaks.js';
import { DEFAULT_FILTERS } from './filters.js';

/** The engine as the daemon wires it, with the parts that a test chooses. */
export function engineContext(
  parts: { service: FeedService; store: FeedStore; clock: Clock } & EngineOptions,
): FeedContext {
  const { holder = 'test-process', isDead = () => false, leaseTtlMs = 30_000, ...chosen } = parts;
  const { service, store, clock } = chosen;
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
    leases: createLeaseRounds(createProcessLeases({ clock, holder, isDead, leaseTtlMs }), usableSchema(store)),
    identity: {
      name: 'default',
      baseUrl: 'https://service.test/v1',
      filters: DEFAULT_FILTERS,
      keepHistory: true,
      start: 'beginning',
    },
    pollIntervalMs: 5_000,
    pendingRetryMs: 30_000,
    maxResultCommits: 2,
    reconcile: { intervalMs: null, windowMs: 2 * 3_600_000, fullIntervalMs: null },
    pageLimit: createPageLimit(read.pageSize, budget.bytes),
    maxHeldPages: 3,
    maxPageCommits: 2,
    stepMs: 60_000,
    ...chosen,
    budget,
    read,
  };
}

/** The parts of the engine that a test chooses, and the options of its leases. */
export type EngineOptions = Partial<FeedContext & LeaseOptions>;

interface LeaseOptions {
  readonly holder: string;
  readonly isDead: (holder: string) => boolean;
  readonly leaseTtlMs: number;
}

/** A schema that can always be used. */
export function usableSchema(store: FeedStore, name = 'scanfeed'): LeaseSchema {
  return { name, store, ready: async () => {}, isUsable: async () => true };
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
