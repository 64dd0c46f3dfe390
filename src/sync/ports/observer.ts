import type { CommitCounts } from '../../core/counts.js';
import type { Freshness } from './commits.js';
import type { Pass, PassKind, Reading, ReadingProgress } from './passes.js';
import type { FeedFilters } from './service.js';
import type { FeedStatus, Position } from './store.js';

/** How a poll ended, as counted in `scanfeed_polls_total`. */
export type PollOutcome =
  | 'entries' // the page had entries
  | 'skipped' // no entries; the cursor moved past runs that the filters hide
  | 'end' // the end of the feed
  | 'stuck' // the cursor is missing, does not move or goes in circles
  | 'failed';

/** Where a failure happened, as counted in `scanfeed_errors_total`. */
export type Stage = 'feed' | 'result' | 'lease' | PassKind;

/** An answered poll of the feed. Monotonic times, milliseconds. */
export interface Poll {
  /** Number of entries received. */
  readonly items: number;
  /** The cursor that the service sent, if it can be stored. */
  readonly next: string | null;
  readonly polledAt: number;
  readonly receivedAt: number;
  /** When its entries were checked and its truncated results loaded; until then the same as `receivedAt`. */
  readonly loadedAt: number;
}

/** A committed page, or pages that were committed together. Monotonic times, milliseconds. */
export interface StoredPage {
  readonly reading: Reading;
  /** One for each page. */
  readonly polls: readonly Poll[];
  readonly commitBegunAt: number;
  readonly committedAt: number;
  readonly counts: CommitCounts;
}

/** Receives the events of the engine, for metrics and logs. Must not throw. */
export interface SyncObserver {
  /** The loop is alive. Its next step (a pause, a request, a statement) may take this many milliseconds. */
  ticked(nextStepMs: number): void;
  polled(outcome: PollOutcome, entries: number): void;
  /**
   * A page or pending results were committed. `deliveries`: monotonic delivery times of the runs that were stored for the first
   * time.
   */
  committed(counts: CommitCounts, deliveries: readonly number[]): void;
  /** A page of the feed or of a pass was committed. Follows `committed`. */
  pageStored(page: StoredPage): void;
  /** How fresh the feed is now. */
  freshness(asOf: Freshness): void;
  truncated(outcome: 'resolved' | 'pending' | 'skipped', entries: number): void;
  /** A failure, and the pause until the next try. */
  failed(stage: Stage, error: unknown, pauseMs: number): void;
  recovered(stage: Stage): void;
  /** Figures that every replica reads from the database. */
  status(status: FeedStatus): void;
  /** A recent or full pass stored entries that the cursor had skipped. `first`: of new runs; `later`: later revisions. */
  reconciled(found: { readonly first: number; readonly later: number }): void;
  /** Progress after each page of a pass, or of the feed while it catches up; null: it is no longer being read. */
  reading(what: Reading, progress: ReadingProgress | null): void;
  /** A pass has reached its end. */
  passFinished(pass: Pass): void;
  /** The number of entries to request changed: a page was too large (then with the error), or pages fit again. */
  pageLimited(entries: number, error?: unknown): void;
  /** The filters have changed since the cursor was stored. */
  filtersChanged(before: FeedFilters, now: FeedFilters): void;
  /** The service rejected the stored cursor, and the feed continues from here. */
  cursorReset(to: Position): void;
  /** The feed is now stuck, or no longer stuck. */
  stuck(stuck: boolean): void;
  /** The service does not show whether the feed has reached its end, so freshness does not move. */
  endHidden(): void;
  /** This process leads the feed, until a monotonic time that moves while it is alive; null: it does not lead it. */
  leading(aliveUntil: (() => number) | null): void;
  /** The feed was caught up at this monotonic time, when the poll was sent; null: it is not caught up. */
  caughtUp(polledAt: number | null): void;
}
