import { sql } from 'kysely';

/** A column with the time of the database, milliseconds since 1970. */
export const DATABASE_MS = sql<number>`extract(epoch FROM clock_timestamp())::double precision * 1000`.as(
  'database_ms',
);

/** The clock of the database, estimated from its answers. */
export interface DatabaseClock {
  /** Records an answer that has just arrived. Returns the row. */
  note<T extends { readonly database_ms: number }>(row: T | undefined): T | undefined;
  /**
   * Returns the latest time, milliseconds since 1970, that the database's clock had certainly reached at a monotonic instant: the
   * time in the latest answer was reached before the answer arrived. Null before the first answer.
   */
  reachedAt(instant: number): number | null;
}

/** @param monotonic monotonic time of this process, milliseconds */
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
