import type { CommitCounts } from '../../core/counts.js';
import type { Freshness } from './commits.js';
import type { Pass, PassKind, Reading, ReadingProgress } from './passes.js';
import type { FeedStatus, Position } from './store.js';

/** How a poll ended, as counted in `scanfeed_polls_total`. */
export type PollOutcome =
  | 'entries' // the page had entries
  | 'skipped' // no entries, the cursor moved past runs that the filters hide
  | 'end' // the end of the feed
  | 'stuck' // the cursor is missing, does not move or goes in circles
  | 'failed';

/** Where a failure happened, as counted in `scanfeed_errors_total`. */
export type Stage = 'feed' | 'result' | 'lease' | PassKind;

/** Receives the events of the engine, for metrics and logs. Must not throw. */
export interface SyncObserver {
  /** The loop is alive, and its next step may take this many milliseconds (a pause, a request, a statement). */
  ticked(nextStepMs: number): void;
  polled(outcome: PollOutcome, entries: number): void;
  /** A page, or results loaded later, were committed; `deliveries`: monotonic times of what was stored for the first time. */
  committed(counts: CommitCounts, deliveries: readonly number[]): void;
  /** How fresh the feed is now. */
  freshness(asOf: Freshness): void;
  truncated(outcome: 'resolved' | 'pending' | 'skipped', entries: number): void;
  /** A failure, and the pause until the next try; `failures` in a row. */
  failed(stage: Stage, error: unknown, failures: number, pauseMs: number): void;
  recovered(stage: Stage, failures: number): void;
  /** This feed adopted pending results of feeds without a leader. */
  adopted(results: number): void;
  /** Figures read from the database, on every replica. */
  status(status: FeedStatus): void;
  /** A recent or full pass stored entries that the cursor had skipped; `first`: of runs not known at all before. */
  reconciled(found: { readonly first: number; readonly later: number }): void;
  /** Progress after each page of a pass, or of the feed while it catches up; null: it is no longer being read. */
  reading(what: Reading, progress: ReadingProgress | null): void;
  /** A pass has reached its end. */
  passFinished(pass: Pass): void;
  /** The number of requested entries changed: a page was too large, as the error says, or pages fit again. */
  pageLimited(entries: number, error?: unknown): void;
  /** The filters are others than when the cursor was stored. */
  filtersChanged(change: FilterChange): void;
  /** The service rejected the stored cursor, and the feed continues from here. */
  cursorReset(to: Position): void;
  /** The feed's cursor leads nowhere from now on, or leads further again. */
  stuck(stuck: boolean): void;
  /** The feed is ours up to this monotonic time; null: not ours. */
  leading(until: number | null): void;
  /** The poll sent at this monotonic time saw the end of the feed; null: the feed has not caught up. */
  caughtUp(polledAt: number | null): void;
}

/** What other filters mean for a feed that has been read with the ones before. For a person, in English. */
export interface FilterChange {
  /** Runs that are no longer included: their rows stay as they are and are not updated any more. */
  readonly hides: readonly string[];
  /** Runs that are included now, but were delivered before the cursor (interface 4.2 rule 2). */
  readonly leavesBehind: readonly string[];
}
