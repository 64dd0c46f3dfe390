import { sql } from 'kysely';
import type { PendingRun } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { IS_RETRIED, PENDING_RUN } from '../runs/pending.js';

/** Creates the access of operators' commands to pending results. */
export function createPendingResults({ db, tables }: StoreConnection) {
  return {
    /** Returns the scan ids of all pending results of a feed that were not given up, the longest pending first. */
    async list(feed: string): Promise<readonly string[]> {
      const { rows } = await sql<{ scan_id: string }>`
        SELECT scan_id FROM ${tables.runs} WHERE feed = ${feed} AND result_state = 'pending' AND ${IS_RETRIED}
        ORDER BY pending_since, scan_id`.execute(db);
      return rows.map((row) => row.scan_id);
    },

    /** Returns the scans that are stored, pending or not, of any feed. */
    async findScans(scanIds: readonly string[]) {
      const { rows } = await sql<{ scanId: string; feed: string; revision: number }>`
        SELECT scan_id AS "scanId", feed, revision FROM ${tables.runs}
        WHERE scan_id = ANY (${scanIds}::text[])`.execute(db);
      return rows;
    },

    /**
     * Makes the pending ones among the scans due at once, including those that were given up, and returns them in no particular
     * order. Reports see no change of these runs.
     */
    async makeDue(feed: string, scanIds: readonly string[]): Promise<readonly PendingRun[]> {
      const { rows } = await sql<PendingRun>`
        UPDATE ${tables.runs} SET next_try_at = LEAST(next_try_at, clock_timestamp())
        WHERE feed = ${feed} AND result_state = 'pending' AND scan_id = ANY (${scanIds}::text[])
        RETURNING ${PENDING_RUN}`.execute(db);
      return rows;
    },

    /**
     * Gives up loading the pending ones among the revisions: they remain pending, but are neither retried nor counted until an
     * operator tries them by name. Later deliveries are stored as usual. Reports see no change of these runs. Rows are locked in
     * the same order as by commits.
     * @param revisions the revision of each scan
     * @returns the scan ids that are now given up
     */
    async giveUp(feed: string, revisions: ReadonlyMap<string, number>): Promise<readonly string[]> {
      const { rows } = await sql<{ scan_id: string }>`
        WITH target AS (
          SELECT scan_id FROM ${tables.runs}
          JOIN unnest(${[...revisions.keys()]}::text[], ${[...revisions.values()]}::int[]) AS requested (scan_id, revision)
            USING (scan_id, revision)
          WHERE feed = ${feed} AND result_state = 'pending'
          ORDER BY scan_id
          FOR NO KEY UPDATE OF runs
        )
        UPDATE ${tables.runs} AS run SET next_try_at = 'infinity'
        FROM target WHERE run.scan_id = target.scan_id
        RETURNING run.scan_id`.execute(db);
      return rows.map((row) => row.scan_id);
    },
  };
}
