import { sql } from 'kysely';

/** A column with the time of the database, milliseconds since 1970. */
export const DATABASE_MS = sql<number>`extract(epoch FROM clock_timestamp())::double precision * 1000`.as(
  'database_ms',
);

export type DatabaseClock = ReturnType<typeof createDatabaseClock>;

/**
 * The clock of the database, estimated from its responses.
 * @param monotonic monotonic time of this process, milliseconds
 */
export function createDatabaseClock(monotonic: () => number) {
  let aheadMs: number | null = null;
  return {
    /** Records a response that has just arrived. Returns the row. */
    note: <T extends { readonly database_ms: number }>(row: T | undefined): T | undefined => {
      if (row !== undefined) aheadMs = row.database_ms - monotonic();
      return row;
    },
    /**
     * Returns the latest time, milliseconds since 1970, that the database's clock had certainly reached at a monotonic instant: the
     * time in the latest response was reached before the response arrived. Null before the first response.
     */
    reachedAt: (instant: number): number | null => (aheadMs === null ? null : aheadMs + instant),
  };
}
