import type { DatabaseClock } from '../connection/database-clock.js';

/** What a commit needs besides the page. */
export interface CommitSettings {
  readonly leaseTtlMs: number;
  /** First pause before a pending result is tried again. */
  readonly pendingRetryMs: number;
  /** Runs delivered this many days ago are not stored (SCANFEED_RETENTION_DAYS); null: all are. */
  readonly keptDays: number | null;
  /** Monotonic milliseconds of this process. */
  readonly monotonic: () => number;
  readonly databaseClock: DatabaseClock;
  /** Called with the duration of each commit, milliseconds, failed ones included. */
  readonly onTransaction?: (durationMs: number) => void;
}
