import { type Kysely, sql } from 'kysely';
import type { EntryBatch } from '../sync/ports.js';
import { isBarred } from './deleted-runs.js';
import type { QuarantineState } from './quarantined-entries.js';
import { receivedEntries } from './received-entries.js';
import type { Tables } from './schema.js';

/** What the database holds against a delivered entry. */
export interface Comparison {
  /** Index in the batch. */
  readonly index: number;
  readonly scanId: string;
  readonly revision: number;
  /** Null: the scan is not stored. */
  readonly storedRevision: number | null;
  /** Names of interface fields whose content differs, where the revision is the same. */
  readonly differing: readonly string[];
  /** The stored result is still to be loaded; its data is not compared. */
  readonly pending: boolean;
  /** It is not to be stored: the run was erased, or is past the retention. */
  readonly barred: boolean;
  /** Null: this revision is not in quarantine. */
  readonly quarantine: QuarantineState | null;
}

/**
 * Compares entries with what is stored, inside PostgreSQL and by the very reading that stores them: no value passes
 * through JavaScript, so that no digit is lost in the comparison. Writes nothing.
 * @param keptDays runs delivered this many days ago are not stored (SCANFEED_RETENTION_DAYS); null: all are
 */
export async function compareEntries(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  batch: EntryBatch,
  keptDays: number | null = null,
): Promise<readonly Comparison[]> {
  if (batch.entries.length === 0) return [];
  const { rows } = await sql<Comparison>`
    WITH ${receivedEntries(batch)}
    SELECT received.position::int - 1 AS index, received.scan_id AS "scanId", received.revision,
      run.revision AS "storedRevision",
      CASE WHEN run.revision = received.revision THEN array_remove(ARRAY[
        CASE WHEN run.status IS DISTINCT FROM received.status THEN 'status' END,
        CASE WHEN received.pending IS NULL AND run.result_state = 'complete'
          AND run.data IS DISTINCT FROM received.data THEN 'data' END,
        CASE WHEN run.failure_reason IS DISTINCT FROM received.failure_reason THEN 'failureReason' END,
        CASE WHEN run.error IS DISTINCT FROM received.error THEN 'error' END
      ], NULL) ELSE '{}'::text[] END AS differing,
      COALESCE(run.revision = received.revision AND run.result_state = 'pending', false) AS pending,
      ${isBarred(sql`received`, keptDays)} AS barred,
      quarantined.state AS quarantine
    FROM received
    LEFT JOIN ${tables.runs} AS run ON run.scan_id = received.scan_id
    LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = received.scan_id
    LEFT JOIN ${tables.quarantine} AS quarantined ON quarantined.feed = ${feed}
      AND quarantined.identity = received.scan_id || '#' || received.revision
    ORDER BY position`.execute(db);
  return rows;
}
