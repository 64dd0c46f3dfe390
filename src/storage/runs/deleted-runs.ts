import { type RawBuilder, sql } from 'kysely';
import { anyOf, type StoreConnection } from '../connection/store-connection.js';
import type { QuarantineState } from '../schema/schema.js';

/**
 * Condition on an `entry` beside its row of `deleted_runs`, if any, as `deleted`: it is not to be stored. Of an erased run
 * no revision is; of an expired one, none but later ones; and nothing that was delivered too long ago.
 * @param keptDays days since the delivery; null: however long ago that was
 */
export function isDeleted(entry: RawBuilder<unknown>, keptDays: number | null = null): RawBuilder<boolean> {
  const deleted = sql<boolean>`(deleted.scan_id IS NOT NULL
        AND (deleted.revision IS NULL OR ${entry}.revision <= deleted.revision))`;
  return keptDays === null ? deleted : sql`(${deleted} OR ${entry}.delivered_at < ${daysAgo(keptDays)})`;
}

function daysAgo(days: number): RawBuilder<Date> {
  return sql`(statement_timestamp() - ${days} * interval '1 day')`;
}

/** What was removed of one scan. */
export interface ErasedRun {
  readonly scanId: string;
  /** Whether it was stored. */
  readonly stored: boolean;
  /** Superseded revisions. */
  readonly revisions: number;
  /** Entries of the quarantine. */
  readonly quarantined: number;
}

/** Removes runs: those that a person names, and those that are past the retention. */
export function createDeletedRuns({ db, tables }: StoreConnection) {
  /** In one order, so that two transactions that change several feeds or entries do not wait for each other. */
  const lockFeeds = async (tx: typeof db) => {
    await tx.selectFrom('feeds').select('name').orderBy('name').forNoKeyUpdate().execute();
  };
  /** Numbers of removals are drawn in the order of commits, like those of runs. */
  const lockClock = async (tx: typeof db) => {
    const row = await tx.selectFrom('change_clock').select('only_row').forUpdate().executeTakeFirst();
    if (row === undefined) await sql`SELECT ${tables.refuseMissingClock}`.execute(tx);
  };
  return {
    /**
     * Removes runs everywhere and bars every later revision of them. The epochs of all feeds go up with it: a page that a
     * daemon has judged before is void. May be repeated.
     */
    erase: (scanIds: readonly string[]): Promise<readonly ErasedRun[]> =>
      db.transaction().execute(async (tx) => {
        // Before the clock, as every commit does.
        await lockFeeds(tx);
        await tx.updateTable('feeds').set({ lease_epoch: sql`lease_epoch + 1` }).execute();
        await lockClock(tx);
        const ids = sql`${scanIds}::text[]`;
        const { rows } = await sql<ErasedRun>`
          WITH run AS (DELETE FROM ${tables.runs} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          revision AS (DELETE FROM ${tables.runHistory} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          entry AS (DELETE FROM ${tables.quarantine} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
          -- An entry without a usable scan id may hold it all the same. What is emptied is not filled again.
          nameless AS (
            UPDATE ${tables.quarantine} SET payload = '', state = ${WITHOUT_CONTENT}
            FROM unnest(${ids}) AS named (scan_id)
            WHERE quarantine.scan_id IS NULL
              AND position(convert_to(to_json(named.scan_id)::text, 'UTF8') IN payload) > 0
            RETURNING named.scan_id
          ),
          erased AS (
            INSERT INTO ${tables.deletedRuns} AS known (scan_id, reason, change_seq)
            SELECT scan_id, 'erased', ${tables.nextChange} FROM (SELECT DISTINCT unnest(${ids}) AS scan_id) AS named
            ON CONFLICT (scan_id) DO UPDATE SET reason = excluded.reason, revision = excluded.revision,
              deleted_at = excluded.deleted_at, change_seq = excluded.change_seq
            RETURNING scan_id
          )
          SELECT scan_id AS "scanId", EXISTS (SELECT FROM run WHERE run.scan_id = erased.scan_id) AS stored,
            (SELECT count(*)::int FROM revision WHERE revision.scan_id = erased.scan_id) AS revisions,
            (SELECT count(*)::int FROM (SELECT * FROM entry UNION ALL SELECT * FROM nameless) AS gone
              WHERE gone.scan_id = erased.scan_id) AS quarantined
          FROM erased ORDER BY array_position(${ids}, erased.scan_id)`.execute(tx);
        return rows;
      }),

    /**
     * Removes up to `limit` runs that were delivered too long ago, with their superseded revisions; how many runs it found.
     * One whose delivery time is missing, or in the future, counts from when it was stored.
     */
    async purgeRuns(keptDays: number, limit: number): Promise<number> {
      const since = daysAgo(keptDays);
      const isOld = sql`LEAST(run.delivered_at, run.synced_at) < ${since}`;
      // First a look that locks nothing. The day of completion is in an index; a run is delivered once it is completed, and
      // one that is completed in the future was given a wrong time.
      const day = sql`(completed_at AT TIME ZONE 'UTC')::date`;
      const today = sql`(statement_timestamp() AT TIME ZONE 'UTC')::date`;
      const found = await sql<{ scan_id: string }>`
        SELECT scan_id FROM ${tables.runs} AS run
        WHERE (${day} <= (${since} AT TIME ZONE 'UTC')::date OR ${day} IS NULL OR ${day} > ${today}) AND ${isOld}
        LIMIT ${limit}`.execute(db);
      if (found.rows.length === 0) return 0;
      const ids = found.rows.map((row) => row.scan_id);
      await db.transaction().execute(async (tx) => {
        await lockClock(tx);
        await sql`
          WITH gone AS (
            DELETE FROM ${tables.runs} AS run WHERE scan_id = ANY (${ids}::text[]) AND ${isOld} RETURNING scan_id, revision
          ),
          revision AS (DELETE FROM ${tables.runHistory} AS old USING gone WHERE old.scan_id = gone.scan_id)
          INSERT INTO ${tables.deletedRuns} (scan_id, revision, reason, change_seq)
          SELECT scan_id, revision, 'expired', ${tables.nextChange} FROM gone
          ON CONFLICT (scan_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason,
            deleted_at = excluded.deleted_at, change_seq = excluded.change_seq`.execute(tx);
      });
      return ids.length;
    },

    /** Removes up to `limit` revisions that were replaced too long ago; how many there were. */
    async purgeHistory(keptDays: number, limit: number): Promise<number> {
      const { numAffectedRows = 0n } = await sql`
        DELETE FROM ${tables.runHistory} WHERE (scan_id, revision) IN (
          SELECT scan_id, revision FROM ${tables.runHistory} WHERE superseded_at < ${daysAgo(keptDays)} LIMIT ${limit})`.execute(
        db,
      );
      return Number(numAffectedRows);
    },

    /**
     * Removes the content of up to `limit` entries that came into quarantine too long ago; how many there were. The rows
     * stay, no longer open: so an entry that is delivered again does not bring its content back.
     */
    async purgeQuarantine(keptDays: number, limit: number): Promise<number> {
      const entries = await db
        .selectFrom('quarantine')
        .where('first_seen_at', '<', daysAgo(keptDays))
        .where('payload', '<>', Buffer.alloc(0))
        .select('id')
        .limit(limit)
        .execute();
      if (entries.length === 0) return 0;
      await db.transaction().execute(async (tx) => {
        // As every commit does before it changes entries.
        await lockFeeds(tx);
        await tx
          .updateTable('quarantine')
          .set({ payload: Buffer.alloc(0), state: WITHOUT_CONTENT })
          .where('id', '=', anyOf(entries.map(({ id }) => id)))
          .execute();
      });
      return entries.length;
    },
  };
}

/** Of an entry whose content is removed: it is not open any more, and stays what it was otherwise. */
const WITHOUT_CONTENT = sql<QuarantineState>`CASE WHEN state = 'open' THEN 'discarded' ELSE state END`;
