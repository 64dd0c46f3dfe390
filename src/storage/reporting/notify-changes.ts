import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';

/**
 * Notifies listeners if there are changes after one, and returns the last one; null if there are none. Not in a transaction that
 * writes: a notification locks the whole server until its transaction is on disk. Sends nothing while sessions that listen without
 * reading have filled half of the server's queue.
 */
export async function notifyChanges({ db, tables }: StoreConnection, after: string | null): Promise<string | null> {
  const { rows } = await sql<{ last: string | null }>`
    SELECT last, CASE WHEN last > COALESCE(${after}::bigint, 0) AND pg_notification_queue_usage() < 0.5
      THEN pg_notify(${`${tables.schema}_changes`}, '') END
    FROM (SELECT GREATEST((SELECT max(change_seq) FROM ${tables.runs}),
      (SELECT max(change_seq) FROM ${tables.deletedRuns})) AS last) AS changes`.execute(db);
  return rows[0]?.last ?? null;
}
