import { sql } from 'kysely';
import type { PendingRun } from '../../sync/ports/index.js';
import { anyOf, type StoreConnection } from '../connection/store-connection.js';
import { IS_RETRIED, PENDING_RUN } from './pending.js';

/** Pending results, as operators' commands choose and settle them. */
export function createPendingResults({ db, tables }: StoreConnection) {
  return {
    /** Scan ids of all pending results of a feed that were not given up, the longest waiting first. */
    async list(feed: string): Promise<readonly string[]> {
      const rows = await db
        .selectFrom('runs')
        .where('feed', '=', feed)
        .where('result_state', '=', 'pending')
        .where(IS_RETRIED)
        .select('scan_id')
        .orderBy('pending_since')
        .orderBy('scan_id')
        .execute();
      return rows.map((row) => row.scan_id);
    },

    /** Those of the scans that are stored, pending or not, of whichever feed. */
    findScans: (scanIds: readonly string[]) =>
      db
        .selectFrom('runs')
        .where('scan_id', '=', anyOf(scanIds))
        .select(['scan_id as scanId', 'feed', 'revision'])
        .execute(),

    /**
     * Makes those of the scans that are pending due at once, in no order, those that were given up included. No change of
     * the run as reports see it.
     */
    makeDue: (feed: string, scanIds: readonly string[]): Promise<readonly PendingRun[]> =>
      db
        .updateTable('runs')
        .set({ next_try_at: sql`LEAST(next_try_at, clock_timestamp())` })
        .where('feed', '=', feed)
        .where('result_state', '=', 'pending')
        .where('scan_id', '=', anyOf(scanIds))
        .returning(PENDING_RUN)
        .execute(),

    /**
     * Gives up loading those of the revisions that are pending: they stay as they are, and are neither retried nor counted
     * until an operator tries them by name. What is delivered later counts as ever. No change of the run as reports see it.
     * They are locked in the order of the commits.
     * @param revisions the revision of each scan that is meant
     * @returns the scan ids of those that are given up now
     */
    async giveUp(feed: string, revisions: ReadonlyMap<string, number>): Promise<readonly string[]> {
      const { rows } = await sql<{ scan_id: string }>`
        WITH meant AS (
          SELECT scan_id FROM ${tables.runs}
          JOIN unnest(${[...revisions.keys()]}::text[], ${[...revisions.values()]}::int[]) AS asked (scan_id, revision)
            USING (scan_id, revision)
          WHERE feed = ${feed} AND result_state = 'pending'
          ORDER BY scan_id
          FOR NO KEY UPDATE OF runs
        )
        UPDATE ${tables.runs} AS run SET next_try_at = 'infinity'
        FROM meant WHERE run.scan_id = meant.scan_id
        RETURNING run.scan_id`.execute(db);
      return rows.map((row) => row.scan_id);
    },
  };
}
