import { type RawBuilder, sql } from 'kysely';
import type { CommitCounts } from '../../core/counts.js';
import { DATABASE_MS } from '../connection/database-clock.js';

/** The answer of a commit statement: one row for each feed whose position was the expected one. */
export interface CommitRow extends Partial<Omit<CommitCounts, 'stored'>> {
  name: string;
  stored?: string[] | null;
  end_claimed: boolean;
  data_complete_as_of: Date | null;
  lag_ms: number | null;
  database_ms: number;
}

/** The columns of an answer with the age of `data_complete_as_of` after the commit, and the time by the database's clock. */
export function lag(completeAsOf: RawBuilder<Date | null>): RawBuilder<unknown> {
  return sql`extract(epoch FROM clock_timestamp() - ${completeAsOf})::double precision * 1000 AS lag_ms, ${DATABASE_MS}`;
}

/** For a row of `counts`: the page is the end. */
export function isEnd(claim: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`(${claim} = 'yes' OR ${claim} = 'ifNothingNew' AND NOT counts.brings_new)`;
}
