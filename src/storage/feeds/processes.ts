import { sql } from 'kysely';
import type { ProcessStore } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';

/** Age after which the row of a process that was killed is deleted. */
const KEPT_FOR = sql.lit('1 hour');

/** Creates the access to the processes that share feeds. */
export function createProcesses({ db, tables }: StoreConnection): ProcessStore {
  return {
    async checkIn(holder, feeds, ttlMs) {
      const { rows } = await sql<{ holder: string }>`
        WITH own AS (
          INSERT INTO ${tables.processes} (holder, feeds, checked_in_at, expires_at)
          VALUES (${holder}, ${feeds}, clock_timestamp(), clock_timestamp() + ${ttlMs} * interval '1 millisecond')
          ON CONFLICT (holder) DO UPDATE SET feeds = excluded.feeds,
            checked_in_at = excluded.checked_in_at, expires_at = excluded.expires_at
        ),
        gone AS (
          -- Skips rows that another process deletes, so that no two wait for each other.
          DELETE FROM ${tables.processes} WHERE holder IN (
            SELECT holder FROM ${tables.processes}
            WHERE holder <> ${holder} AND expires_at < clock_timestamp() - interval ${KEPT_FOR} FOR UPDATE SKIP LOCKED
          )
        )
        SELECT ${holder} AS holder
        UNION ALL
        SELECT holder FROM ${tables.processes} WHERE holder <> ${holder}
          -- A process that checked in in the future did so before the clock was set back, and may have been killed since.
          AND clock_timestamp() BETWEEN checked_in_at AND expires_at
        ORDER BY holder`.execute(db);
      return rows.map((row) => row.holder);
    },

    async checkOut(holder) {
      await db.deleteFrom('processes').where('holder', '=', holder).execute();
    },
  };
}
