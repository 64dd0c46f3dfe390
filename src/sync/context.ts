import type { Clock } from '../core/clock.js';
import type { FeedLeases } from './lease/feed-leases.js';
import type { MemoryBudget } from './memory/memory-budget.js';
import type { ReadSettings } from './page/read-page.js';
import type { FeedIdentity, FeedService, FeedStore, SyncObserver } from './ports/index.js';
import type { ResultLoader } from './results/resolve-truncated.js';
import type { FailurePauses } from './retry/failure-pauses.js';
import type { WakeUp } from './waiting/wake-up.js';

/** Intervals of recent and full passes, and how far back recent passes read. Milliseconds; null: no passes of that kind. */
export interface ReconcileSettings {
  readonly intervalMs: number | null;
  readonly windowMs: number;
  readonly fullIntervalMs: number | null;
}

/** Settings of the engine for a feed. */
export interface FeedSettings {
  readonly identity: FeedIdentity;
  readonly markdown: boolean;
  /** Maximum number of entries of a page, 1 to 200. */
  readonly pageSize: number;
  readonly reconcile: ReconcileSettings;
  readonly pollIntervalMs: number;
  readonly pendingRetryMs: number;
  /** Maximum time for fetching, completing and committing one page before the loop counts as stuck, milliseconds. */
  readonly stepMs: number;
  /** Maximum number of pages in memory, including those being committed. */
  readonly maxHeldPages: number;
  /** Maximum number of commits of the feed at the same time. In the database, the second one waits for the first. */
  readonly maxPageCommits: number;
  /** Maximum number of concurrent commits of pending results, so that connections are left for other statements. */
  readonly maxResultCommits: number;
}

/** Dependencies and settings of the engine. */
export interface FeedContext {
  readonly settings: FeedSettings;
  readonly service: FeedService;
  readonly store: FeedStore;
  readonly observer: SyncObserver;
  readonly clock: Clock;
  readonly loader: ResultLoader;
  /** Those of all feeds of this process in this schema. */
  readonly leases: FeedLeases;
  /** Memory for pages and results; shared with the loader. */
  readonly budget: MemoryBudget;
}

/** Additional parts that the tasks of a leader share. */
export interface LeaderContext extends FeedContext {
  readonly read: ReadSettings;
  readonly recovery: FailurePauses;
  /** Wakes the retries of pending results once a page was committed whose results are pending only for lack of memory. */
  readonly retryWakeUp: WakeUp;
}
