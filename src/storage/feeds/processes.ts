import { sql } from 'kysely';
import type { ProcessStore } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { IS_ALIVE } from '../tables/lease-columns.js';

/** Age after which the row of a process that was killed is deleted. */
const KEPT_FOR = sql.lit('1 hour');

interface Row {
  readonly holder: string;
  readonly feeds: number;
  readonly wasAlive: boolean;
  readonly clockWasSetBack: boolean;
}

/** Creates the access to the processes, in the schema of the settings. */
export function createProcesses({ db, tables: { processes } }: StoreConnection): ProcessStore {
  return {
    async renewProcess({ holder, feeds, unusable, ttlMs }) {
      const { rows } = await sql<Row>`
        WITH own AS MATERIALIZED (
          SELECT ${IS_ALIVE} AS is_alive, renewed_at > clock_timestamp() AS is_ahead
          FROM ${processes} AS process WHERE holder = ${holder}
        ),
        renewed AS (
          INSERT INTO ${processes} (holder, feeds, unusable, renewed_at, expires_at)
          VALUES (${holder}, ${feeds}, ${unusable}::text[], clock_timestamp(),
            clock_timestamp() + ${ttlMs} * interval '1 millisecond')
          ON CONFLICT (holder) DO UPDATE SET feeds = excluded.feeds, unusable = excluded.unusable,
            renewed_at = excluded.renewed_at, expires_at = excluded.expires_at
          RETURNING holder, feeds
        ),
        gone AS (
          -- After the own row is locked, and without rows that another process locks, so that no two wait for each other.
          DELETE FROM ${processes} WHERE holder IN (
            SELECT holder FROM ${processes}
            WHERE holder <> (SELECT holder FROM renewed) AND expires_at < clock_timestamp() - interval ${KEPT_FOR}
            FOR UPDATE SKIP LOCKED
          )
        )
        SELECT holder, feeds, COALESCE((SELECT is_alive FROM own), false) AS "wasAlive",
          COALESCE((SELECT is_ahead FROM own), false) AS "clockWasSetBack"
        FROM renewed
        UNION ALL
        SELECT holder, feeds, NULL, NULL FROM ${processes} AS process WHERE holder <> ${holder} AND ${IS_ALIVE}`.execute(
        db,
      );
      const own = rows.find((row) => row.holder === holder) as Row;
      return {
        living: new Map(rows.map((row) => [row.holder, row.feeds])),
        wasAlive: own.wasAlive,
        clockWasSetBack: own.clockWasSetBack,
      };
    },

    async removeProcess(holder) {
      await sql`DELETE FROM ${processes} WHERE holder = ${holder}`.execute(db);
    },
  };
}
