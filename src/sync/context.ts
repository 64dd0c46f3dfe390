import type { Clock } from '../core/clock.js';
import type { MemoryBudget } from './memory/memory-budget.js';
import type { PageLimit } from './page/page-limit.js';
import type { FeedFilters, FeedIdentity, FeedService, FeedStore, SyncObserver } from './ports/index.js';
import type { ResultLoader } from './results/resolve-truncated.js';
import type { RetryWakeUp } from './results/retry-wake-up.js';
import type { DatabaseWatch } from './retry/database-watch.js';

/** How often recent and full passes begin, and how far back recent ones read. Milliseconds; null: that kind is off. */
export interface ReconcileSettings {
  readonly intervalMs: number | null;
  readonly windowMs: number;
  readonly fullIntervalMs: number | null;
}

/** How a feed is read. */
export interface ReadSettings {
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  /** 1 to 200. */
  readonly pageLimit: number;
}

/** Everything the engine works with. */
export interface FeedContext {
  readonly service: FeedService;
  readonly store: FeedStore;
  readonly observer: SyncObserver;
  readonly clock: Clock;
  readonly loader: ResultLoader;
  /** Resolves once the schema can be worked on; rejects while it cannot. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  readonly identity: FeedIdentity;
  /** Names this process among those that may hold the feed. */
  readonly holder: string;
  /** Whether this holder of the lease was a process of the same host that has ended. */
  readonly isDead: (holder: string) => boolean;
  readonly leaseTtlMs: number;
  readonly read: ReadSettings;
  readonly pollIntervalMs: number;
  readonly pendingRetryMs: number;
  /** Results loaded later that are committed at once: the others' statements want connections, too. */
  readonly resultCommits: number;
  readonly reconcile: ReconcileSettings;
  /** Bytes of pages and results held at once; the loader's too. */
  readonly budget: MemoryBudget;
  readonly pageLimit: PageLimit;
  /** Pages held at once, the one being committed included. */
  readonly pagesAhead: number;
  /** Longest time that fetching, completing and committing one page may take before the loop counts as wedged. */
  readonly stepMs: number;
}

/** The same under a lease, where several tasks share what is known of the database and of results that wait. */
export interface LeaderContext extends FeedContext, Pick<DatabaseWatch, 'waitOut'> {
  readonly retryWakeUp: RetryWakeUp;
}
