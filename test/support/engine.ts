import type { FeedContext, FeedSettings } from '../../src/sync/context.js';
import { createLeaseRounds, type LeaseSchema } from '../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../src/sync/lease/process-leases.js';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import { createPageLimit } from '../../src/sync/page/page-limit.js';
import type { FeedFilters, FeedIdentity, FeedStore, SyncObserver } from '../../src/sync/ports/index.js';
import { createResultLoader } from '../../src/sync/results/resolve-truncated.js';
import { captureErrorLeaks } from './canaries/capture-leaks.js';
import { DEFAULT_FILTERS } from './filters.js';

/** The parts, settings and options that a test chooses. */
export interface EngineOptions
  extends Partial<Omit<FeedContext, 'settings' | 'read'> & Omit<FeedSettings, 'identity'>> {
  readonly identity?: Partial<FeedIdentity>;
  readonly read?: Partial<{ filters: FeedFilters; markdown: boolean; pageSize: number }>;
  readonly holder?: string;
  readonly isDead?: (holder: string) => boolean;
  readonly leaseTtlMs?: number;
}

type NeededParts = Pick<FeedContext, 'service' | 'store' | 'clock'>;

/** The engine as the daemon wires it, with what a test chooses. */
export function engineContext(options: NeededParts & EngineOptions): FeedContext {
  const { service, store, clock, budget = createMemoryBudget(64 * 1024 * 1024) } = options;
  const { holder = 'test-process', isDead = () => false, leaseTtlMs = 30_000 } = options;
  const { filters = DEFAULT_FILTERS, markdown = false, pageSize = 10 } = options.read ?? {};
  const shared = { service, store, clock, budget };
  return {
    ...shared,
    observer: options.observer ?? silentObserver(),
    read: { filters, markdown, limit: createPageLimit(pageSize, budget.bytes) },
    loader: options.loader ?? createResultLoader({ ...shared, markdown, concurrency: 4, keptDays: null }),
    leases:
      options.leases ??
      createLeaseRounds(createProcessLeases({ clock, holder, isDead, leaseTtlMs }), usableSchema(store)),
    settings: {
      identity: {
        name: 'default',
        baseUrl: 'https://service.test/v1',
        filters: DEFAULT_FILTERS,
        keepHistory: true,
        start: 'beginning',
        ...options.identity,
      },
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
