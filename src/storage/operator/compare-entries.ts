import { type RawBuilder, sql } from 'kysely';
import { type FeedFilters, FILTER_NAMES, FILTERS, includedValues } from '../../core/feed-filters.js';
import { OPTIONAL_FIELDS } from '../../core/run-fields.js';
import type { EntryBatch } from '../../sync/ports/index.js';
import { receivedEntries } from '../commit/received-entries.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { isDeleted } from '../tables/retention.js';
import type { QuarantineState } from '../tables/schema.js';

/** A delivered entry compared with the database. */
export interface Comparison {
  /** Index in the batch. */
  readonly index: number;
  readonly scanId: string;
  readonly revision: number;
  /** Null: the scan is not stored. */
  readonly storedRevision: number | null;
  /**
   * Names of the interface fields that differ, if the revision is the same. The row is the union of all sources, so only fields
   * with a value in the entry count.
   */
  readonly differing: readonly string[];
  /** The stored result is pending; its data is not compared. */
  readonly pending: boolean;
  /** The entry must not be stored: its run was erased or has expired. */
  readonly deleted: boolean;
  /** Null: this revision is not in quarantine. */
  readonly quarantine: QuarantineState | null;
}

/** Creates a function that compares entries with stored runs. Writes nothing. */
export function createEntryComparison({ db, tables }: StoreConnection) {
  /**
   * Compares inside PostgreSQL and reads the entries like the commit: no value passes through JavaScript, so no digit is lost.
   * @param keptDays maximum age of stored runs, days since their delivery (SCANFEED_RETENTION_DAYS); null: unlimited
   */
  return async (feed: string, batch: EntryBatch, keptDays: number | null): Promise<readonly Comparison[]> => {
    if (batch.length === 0) return [];
    const { rows } = await sql<Comparison>`
      WITH ${receivedEntries(batch)}
      SELECT received.position::int - 1 AS index, received.scan_id AS "scanId", received.revision,
        run.revision AS "storedRevision",
        CASE WHEN run.revision = received.revision THEN array_remove(ARRAY[
          CASE WHEN run.status <> received.status THEN 'status' END,
          CASE WHEN run.environment <> received.environment THEN 'environment' END,
          CASE WHEN ${differs('document_type_slug')} OR ${differs('document_type_name')} THEN 'documentType' END,
          CASE WHEN ${differs('file_name')} THEN 'fileName' END,
          CASE WHEN received.test_mode_revision IS NOT NULL AND run.partner_test_mode <> received.partner_test_mode THEN 'partnerTestMode' END,
          -- A complete row without data differs from a truncated entry, which has data in its full result.
          CASE WHEN run.result_state = 'complete' AND (${differs('data')}
            OR received.pending IS NOT NULL AND run.data IS NULL AND run.status = 'completed') THEN 'data' END,
          ${sql.join(OTHER_DIFFERENCES)}
        ], NULL) ELSE '{}'::text[] END AS differing,
        COALESCE(run.revision = received.revision AND run.result_state = 'pending', false) AS pending,
        ${isDeleted(sql`received`, keptDays)} AS deleted,
        quarantined.state AS quarantine
      FROM received
      LEFT JOIN ${tables.runs} AS run ON run.scan_id = received.scan_id
      LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = received.scan_id
      LEFT JOIN ${tables.quarantine} AS quarantined ON quarantined.feed = ${feed}
        AND quarantined.identity = received.scan_id || '#' || received.revision
      ORDER BY position`.execute(db);
    return rows;
  };
}

/** @param otherwise condition under which an entry without a value states that there is none */
function differs(column: string, otherwise = sql<boolean>`false`): RawBuilder<boolean> {
  const [run, received] = [sql.ref(`run.${column}`), sql.ref(`received.${column}`)];
  return sql`((${received} IS NOT NULL OR ${otherwise}) AND ${run} IS DISTINCT FROM ${received})`;
}

/** The names of the other fields that differ. A completed entry states implicitly that there was no failure. */
const OTHER_DIFFERENCES = OPTIONAL_FIELDS.filter(({ field }) => field !== 'data').map(({ field, column, state }) => {
  const otherwise = state === 'failed' ? sql<boolean>`received.status = 'completed'` : undefined;
  return sql`CASE WHEN ${differs(column, otherwise)} THEN ${sql.lit(field)} END`;
});

/**
 * Creates a function that counts the stored runs of a feed that it should list with these filters in a range of delivery times;
 * `until` null: to the present. It may apply `since` to any time of a run, so all of them count.
 */
export function createRunCount({ db, tables }: StoreConnection) {
  return async (
    feed: string,
    { since, until }: { readonly since: Date; readonly until: Date | null },
    filters: FeedFilters,
  ): Promise<number> => {
    const conditions = FILTER_NAMES.map((name) => {
      const values = includedValues(name, filters);
      return values === null ? sql`true` : sql`${sql.ref(FILTERS[name].column)} = ANY (${values}::text[])`;
    });
    const { rows } = await sql<{ runs: number }>`
      SELECT count(*)::int AS runs FROM ${tables.runs}
      WHERE feed = ${feed} AND delivered_at <= COALESCE(${timestamp(until)}, 'infinity')
        AND LEAST(delivered_at, completed_at, submitted_at) >= ${timestamp(since)}
        AND ${sql.join(conditions, sql` AND `)}`.execute(db);
    return rows[0]?.runs ?? 0;
  };
}
