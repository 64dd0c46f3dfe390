import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { deleteStoredRows, findStoredTables } from '../reporting/stored-rows.js';
import { daysAgo } from '../tables/retention.js';

/** The number of rows that were deleted for one scan. */
export interface ErasedRun {
  readonly scanId: string;
  /** Whether it was stored. */
  readonly stored: boolean;
  /** Superseded revisions. */
  readonly revisions: number;
  /** Entries of the quarantine. */
  readonly quarantined: number;
}

/** Creates the functions that delete runs: those that an operator names, and expired ones. */
export function createDeletedRuns({ db, tables }: StoreConnection) {
  /** Locks all feeds in the same order, so that two transactions that change several feeds or entries do not deadlock. */
  const lockFeeds = async (tx: typeof db) => {
    await sql`SELECT FROM ${tables.feeds} ORDER BY name FOR NO KEY UPDATE`.execute(tx);
  };
  /** PostgreSQL keeps frequent values of columns in its statistics, which pg_stats shows, until the table is analyzed. */
  const renewStatistics = async () => {
    const stored = await findStoredTables({ db, tables });
    await sql`ANALYZE ${sql.join([tables.runs, tables.runHistory, tables.quarantine, ...stored])}`.execute(db);
  };
  /** Locks the clock: deletions draw their numbers in the order of commits, like changes of runs. */
  const lockClock = (tx: typeof db) => sql`SELECT ${tables.lockChangeClock}`.execute(tx);
  return {
    /** Returns what `erase` would delete. Changes and locks nothing. */
    async countErased(scanIds: readonly string[]): Promise<readonly ErasedRun[]> {
      const { rows } = await sql<ErasedRun>`
        SELECT scan_id AS "scanId", EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = named.scan_id) AS stored,
          (SELECT count(*)::int FROM ${tables.runHistory} AS old WHERE old.scan_id = named.scan_id) AS revisions,
          (SELECT count(*)::int FROM ${tables.quarantine} AS entry
            WHERE entry.scan_id = named.scan_id OR entry.scan_id IS NULL AND ${CONTAINS_NAMED}) AS quarantined
        FROM unnest(${scanIds}::text[]) WITH ORDINALITY AS named (scan_id, number) ORDER BY number`.execute(db);
      return rows;
    },

    /**
     * Deletes runs from all tables and prevents any revision of them from being stored again. Raises the epochs of all feeds, so
     * that no page judged before can be committed. May be repeated.
     */
    async erase(scanIds: readonly string[]): Promise<readonly ErasedRun[]> {
      const erased = await db.transaction().execute(async (tx) => {
        // Before the clock, like every commit.
        await lockFeeds(tx);
        // Not by one: a failover may have lost a take that its process still believes in, with just that epoch.
        await sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1 + ceil(random() * 1000000)`.execute(tx);
        await deleteStoredRows({ db: tx, tables }, scanIds);
        await lockClock(tx);
        const ids = sql`${scanIds}::text[]`;
        const { rows } = await sql<ErasedRun>`
          WITH run AS (DELETE FROM ${tables.runs} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          revision AS (DELETE FROM ${tables.runHistory} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          entry AS (DELETE FROM ${tables.quarantine} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          -- An entry without a usable scan id may still contain it. Its content is deleted and never stored again.
          nameless AS (
            UPDATE ${tables.quarantine} SET payload = '', state = ${WITHOUT_CONTENT}
            FROM unnest(${ids}) AS named (scan_id)
            WHERE quarantine.scan_id IS NULL AND ${CONTAINS_NAMED}
            RETURNING named.scan_id
          ),
          erased AS (
            INSERT INTO ${tables.deletedRuns} AS known (scan_id, reason, change_seq)
            SELECT scan_id, 'erased', ${tables.nextChange} FROM (SELECT DISTINCT unnest(${ids}) AS scan_id) AS named
            ON CONFLICT (scan_id) DO UPDATE SET reason = excluded.reason, revision = excluded.revision,
              test_mode_revision = NULL, deleted_at = excluded.deleted_at, change_seq = excluded.change_seq
            RETURNING scan_id
          )
          SELECT scan_id AS "scanId", EXISTS (SELECT FROM run WHERE run.scan_id = erased.scan_id) AS stored,
            (SELECT count(*)::int FROM revision WHERE revision.scan_id = erased.scan_id) AS revisions,
            (SELECT count(*)::int FROM (SELECT * FROM entry UNION ALL SELECT * FROM nameless) AS gone
              WHERE gone.scan_id = erased.scan_id) AS quarantined
          FROM erased ORDER BY array_position(${ids}, erased.scan_id)`.execute(tx);
        return rows;
      });
      await renewStatistics();
      return erased;
    },

    /**
     * Deletes up to `limit` runs that were delivered too long ago, with their superseded revisions. Returns the number of runs it
     * found. If the delivery time is missing or in the future, the time of storing counts instead.
     */
    async purgeRuns(keptDays: number, limit: number): Promise<number> {
      const since = daysAgo(keptDays);
      const isOld = sql`LEAST(run.delivered_at, run.synced_at) < ${since}`;
      // Searches first, without locks, by the indexed time of completion: a run is never delivered before it is completed. A
      // completion in the future is a wrong time.
      const found = await sql<{ scan_id: string }>`
        SELECT scan_id FROM ${tables.runs} AS run
        WHERE (completed_at <= ${since} OR completed_at IS NULL OR completed_at > statement_timestamp()) AND ${isOld}
        LIMIT ${limit}`.execute(db);
      if (found.rows.length === 0) return 0;
      const ids = found.rows.map((row) => row.scan_id);
      await db.transaction().execute(async (tx) => {
        await lockClock(tx);
        await sql`
          WITH gone AS (
            DELETE FROM ${tables.runs} AS run WHERE scan_id = ANY (${ids}::text[]) AND ${isOld} 
            RETURNING scan_id, revision, CASE WHEN partner_test_mode THEN test_mode_revision END AS test_mode_revision
          ),
          revision AS (DELETE FROM ${tables.runHistory} AS old USING gone WHERE old.scan_id = gone.scan_id)
          INSERT INTO ${tables.deletedRuns} (scan_id, revision, test_mode_revision, reason, change_seq)
          SELECT scan_id, revision, test_mode_revision, 'expired', ${tables.nextChange} FROM gone
          ON CONFLICT (scan_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason,
            test_mode_revision = excluded.test_mode_revision, deleted_at = excluded.deleted_at, change_seq = excluded.change_seq`.execute(
          tx,
        );
      });
      return ids.length;
    },

    /** Deletes up to `limit` revisions that were superseded too long ago. Returns their number. */
    async purgeHistory(keptDays: number, limit: number): Promise<number> {
      const { numAffectedRows = 0n } = await sql`
        DELETE FROM ${tables.runHistory} WHERE (scan_id, revision) IN (
          SELECT scan_id, revision FROM ${tables.runHistory} WHERE superseded_at < ${daysAgo(keptDays)} LIMIT ${limit})`.execute(
        db,
      );
      return Number(numAffectedRows);
    },

    /**
     * Deletes the content of up to `limit` entries that were quarantined too long ago. Returns their number. The rows remain, no
     * longer open, so that the content is not stored again with the next delivery.
     */
    async purgeQuarantine(keptDays: number, limit: number): Promise<number> {
      const { rows: entries } = await sql<{ id: string }>`
        SELECT id FROM ${tables.quarantine} WHERE first_seen_at < ${daysAgo(keptDays)} AND payload <> '' LIMIT ${limit}`.execute(
        db,
      );
      if (entries.length === 0) return 0;
      await db.transaction().execute(async (tx) => {
        // Like every commit, before it changes entries.
        await lockFeeds(tx);
        await sql`
          UPDATE ${tables.quarantine} SET payload = '', state = ${WITHOUT_CONTENT}
          WHERE id = ANY (${entries.map(({ id }) => id)}::bigint[])`.execute(tx);
      });
      return entries.length;
    },
  };
}

/** Whether the bytes of a quarantined entry contain the scan id of `named`. */
const CONTAINS_NAMED = sql`position(convert_to(to_json(named.scan_id)::text, 'UTF8') IN payload) > 0`;

/** The new state of an entry whose content is deleted: an open one is discarded. */
const WITHOUT_CONTENT = sql`CASE WHEN state = 'open' THEN 'discarded' ELSE state END`;
