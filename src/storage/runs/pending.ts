import { sql } from 'kysely';
import { MAX_REVISION } from '../../core/run-fields.js';
import type { PendingRun, PendingStore, PostponedTry, StoredResult } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { isHeld } from '../tables/lease-columns.js';

/** For a pending row of `runs`: its result was not given up. */
export const IS_RETRIED = sql<boolean>`next_try_at < 'infinity'`;

/** Columns of a pending row of `runs`. */
export const PENDING_RUN = sql`scan_id AS "scanId", revision, status, pending_reason AS reason, attempts,
          extract(epoch FROM clock_timestamp() - pending_since)::double precision * 1000 AS "pendingForMs"`;

/** Creates the engine's access to pending results. */
export function createPendingRetries({ db, tables }: StoreConnection): PendingStore {
  return {
    /** Omits scans that are not stored. Deleted runs count as complete: their results must not be loaded. */
    async findStored(scanIds) {
      const { rows } = await sql<StoredResult>`
        SELECT scan_id AS "scanId", revision,
          result_state = 'complete' AND (status = 'failed' OR data IS NOT NULL) AS complete,
          markdown IS NOT NULL OR markdown_absent AS "markdownKnown"
        FROM ${tables.runs} WHERE scan_id = ANY (${scanIds}::text[])
        UNION ALL
        SELECT scan_id, COALESCE(revision, ${MAX_REVISION}), true, true
        FROM ${tables.deletedRuns} WHERE scan_id = ANY (${scanIds}::text[])`.execute(db);
      return rows;
    },

    async duePending(feed, limit) {
      const { rows } = await sql<PendingRun>`
        SELECT ${PENDING_RUN} FROM ${tables.runs}
        WHERE feed = ${feed} AND result_state = 'pending' AND (next_try_at <= clock_timestamp()
          -- Longer than any pause (promise 3): the clock was set back.
          OR next_try_at > clock_timestamp() + CASE WHEN pending_since < clock_timestamp() - interval '7 days'
            THEN interval '1 day' ELSE interval '1 hour' END AND ${IS_RETRIED})
        ORDER BY pending_reason <> 'no_memory', next_try_at LIMIT ${limit}`.execute(db);
      return rows;
    },

    /** Reports see no change of these runs, so it draws no `change_seq`. */
    async postponePending(lease, tries) {
      const { rows } = await sql<{ held: boolean }>`
        -- Locked, so that a new holder of the feed waits for this statement.
        WITH held AS MATERIALIZED (SELECT FROM ${tables.feeds} WHERE ${isHeld(lease)} FOR NO KEY UPDATE),
        postponed AS (
          UPDATE ${tables.runs} AS run SET
            attempts = run.attempts + 1,
            -- A run that has its full result must not lose it: a response that contradicts it would never settle it.
            pending_reason = CASE WHEN run.pending_reason = 'test_mode_unknown' THEN run.pending_reason ELSE failed.reason END,
            next_try_at = clock_timestamp() + failed.next_try_in_ms * interval '1 millisecond'
          FROM jsonb_to_recordset(${rowsOf(tries)}::jsonb) AS failed (
            scan_id text, revision integer, reason text, next_try_in_ms double precision
          )
          WHERE EXISTS (SELECT FROM held) AND run.scan_id = failed.scan_id AND run.revision = failed.revision
            AND run.result_state = 'pending' AND ${IS_RETRIED}
        )
        SELECT EXISTS (SELECT FROM held) AS held`.execute(db);
      return rows[0]?.held ?? false;
    },
  };
}

function rowsOf(tries: readonly PostponedTry[]): string {
  return JSON.stringify(
    tries.map((failed) => ({
      scan_id: failed.scanId,
      revision: failed.revision,
      reason: failed.reason,
      next_try_in_ms: failed.nextTryInMs,
    })),
  );
}
