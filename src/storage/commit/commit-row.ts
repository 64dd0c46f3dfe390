import { type RawBuilder, sql } from 'kysely';
import type { CommitCounts } from '../../core/counts.js';
import type { Batching } from '../connection/batch-calls.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';

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

/** The response of a commit statement: one row for each feed whose position was the expected one. */
export interface CommitRow extends Partial<Omit<CommitCounts, 'stored'>> {
  name: string;
  stored?: string[] | null;
  end_claimed: boolean;
  data_complete_as_of: Date | null;
  lag_ms: number | null;
  database_ms: number;
}

/** The columns of a response with the age of `data_complete_as_of` after the commit, and the time by the database's clock. */
export function freshnessColumns(completeAsOf: RawBuilder<Date | null>): RawBuilder<unknown> {
  return sql`extract(epoch FROM clock_timestamp() - ${completeAsOf})::double precision * 1000 AS lag_ms, ${DATABASE_MS}`;
}

/** For a row of `counts`: the page is the end. */
export function isEnd(claim: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`(${claim} = 'yes' OR ${claim} = 'ifNothingNew' AND NOT counts.brings_new)`;
}
