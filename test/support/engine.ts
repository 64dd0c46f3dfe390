import type { FeedContext, FeedSettings } from '../../src/sync/context.js';
import { FeedLeases, type LeaseSchema } from '../../src/sync/lease/feed-leases.js';
import { ProcessLease, type ProcessParts } from '../../src/sync/lease/process-lease.js';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import type { FeedIdentity, FeedStore, ProcessStore, SyncObserver } from '../../src/sync/ports/index.js';
import { createResultLoader } from '../../src/sync/results/resolve-truncated.js';
import { captureErrorLeaks } from './canaries/capture-leaks.js';
import { DEFAULT_FILTERS } from './filters.js';

/** The parts, settings and options that a test chooses. */
export interface EngineOptions extends Partial<Omit<FeedContext, 'settings'> & Omit<FeedSettings, 'identity'>> {
  readonly identity?: Partial<FeedIdentity>;
  /** By default that of a store with processes, or a process that is alone. */
  readonly process?: ProcessLease;
}

type NeededParts = Pick<FeedContext, 'service' | 'store' | 'clock'>;

/** The engine as the daemon wires it, with what a test chooses. */
export function engineContext(options: NeededParts & EngineOptions): FeedContext {
  const { service, store, clock, budget = createMemoryBudget(64 * 1024 * 1024) } = options;
  const {
    process = processLease({ clock, store: 'renewProcess' in store ? (store as FeedStore & ProcessStore) : ALONE }),
  } = options;
  const { markdown = false, pageSize = 10 } = options;
  const shared = { service, store, clock, budget };
  return {
    ...shared,
    observer: options.observer ?? silentObserver(),
    loader: options.loader ?? createResultLoader({ ...shared, markdown, concurrency: 4, keptDays: null }),
    leases: options.leases ?? new FeedLeases(process, usableSchema(store)),
    settings: {
      identity: {
        name: 'default',
        baseUrl: 'https://service.test/v1',
        filters: DEFAULT_FILTERS,
        keepHistory: true,
        start: 'beginning',
        ...options.identity,
      },
      ...{ markdown, pageSize },
      reconcile: options.reconcile ?? { intervalMs: null, windowMs: 2 * 3_600_000, fullIntervalMs: null },
      pollIntervalMs: options.pollIntervalMs ?? 5_000,
      pendingRetryMs: options.pendingRetryMs ?? 30_000,
      stepMs: options.stepMs ?? 60_000,
      maxHeldPages: options.maxHeldPages ?? 3,
      maxPageCommits: options.maxPageCommits ?? 2,
      maxResultCommits: options.maxResultCommits ?? 2,
    },
  };
}

const ALONE: ProcessStore = {
  renewProcess: async ({ holder, feeds }) => ({
    living: new Map([[holder, feeds]]),
    wasAlive: true,
    clockWasSetBack: false,
  }),
  removeProcess: async () => {},
};

/** The lease of a process, with what a test chooses. */
export function processLease({
  ttlMs = 30_000,
  ...parts
}: Partial<ProcessParts> & Pick<ProcessParts, 'clock' | 'store'>) {
  return new ProcessLease({ holder: 'test-process', isDead: () => false, ready: async () => {}, ttlMs, ...parts });
}

/** A schema that can always be used. */
export function usableSchema(store: FeedStore, name = 'scanfeed'): LeaseSchema {
  return { name, store, ready: async () => {} };
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
