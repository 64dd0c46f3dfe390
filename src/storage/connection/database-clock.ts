import { sql } from 'kysely';

/** A column of answers that show the database's clock: milliseconds since 1970. */
export const DATABASE_MS = sql<number>`extract(epoch FROM clock_timestamp())::double precision * 1000`.as(
  'database_ms',
);

/** The database's clock, as its answers show it. */
export interface DatabaseClock {
  /** Notes an answer that has just arrived. Returns the row. */
  note<T extends { readonly database_ms: number }>(row: T | undefined): T | undefined;
  /**
   * The latest time that the database's clock had certainly reached at a monotonic instant, milliseconds since 1970: what it
   * showed in the latest answer was true at the latest when that arrived. Null before the first answer.
   */
  reachedAt(instant: number): number | null;
}

/** @param monotonic milliseconds of this process */
export function createDatabaseClock(monotonic: () => number): DatabaseClock {
  let aheadMs: number | null = null;
  return {
    note: (row) => {
      if (row !== undefined) aheadMs = row.database_ms - monotonic();
      return row;
    },
    reachedAt: (instant) => (aheadMs === null ? null : aheadMs + instant),
  };
}
