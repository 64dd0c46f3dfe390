import type { Batching } from '../connection/batch-calls.js';
import type { DatabaseClock } from '../connection/database-clock.js';

/** The settings of commits, and the clocks they are dated by. */
export interface CommitSettings {
  /** Pause before the first retry of a pending result, milliseconds. */
  readonly pendingRetryMs: number;
  /** Maximum age of stored runs, days since their delivery (SCANFEED_RETENTION_DAYS); null: unlimited. */
  readonly keptDays: number | null;
  /** Monotonic time of this process, milliseconds. */
  readonly monotonic: () => number;
  readonly databaseClock: DatabaseClock;
  /** Batches commits without entries with those of other feeds; not batched by default. */
  readonly batching?: Batching;
  /** Called with the duration of each commit, milliseconds, including failed ones. */
  readonly onTransaction?: (durationMs: number) => void;
}
