import { type RawBuilder, sql } from 'kysely';

/**
 * Condition on an `entry` joined with its row of `deleted_runs`, if any, as `deleted`: the entry must not be stored. No revision of
 * an erased run is stored, only later revisions of an expired one, and no run that was delivered too long ago.
 * @param keptDays maximum age, days since the delivery; null: unlimited
 */
export function isDeleted(entry: RawBuilder<unknown>, keptDays: number | null = null): RawBuilder<boolean> {
  const deleted = sql<boolean>`(deleted.scan_id IS NOT NULL
        AND (deleted.revision IS NULL OR ${entry}.revision <= deleted.revision))`;
  return keptDays === null ? deleted : sql`(${deleted} OR ${entry}.delivered_at < ${daysAgo(keptDays)})`;
}

/** Returns the time this many days ago. */
export function daysAgo(days: number): RawBuilder<Date> {
  return sql`(statement_timestamp() - ${days} * interval '1 day')`;
}
