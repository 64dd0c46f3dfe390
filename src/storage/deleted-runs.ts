import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables } from './schema.js';

/**
 * Condition on an `entry` beside its row of `deleted_runs`, if any, as `deleted`: it is not to be stored. Of an erased run
 * no revision is; of an expired one, none but later ones; and nothing that was delivered too long ago.
 * @param keptDays days since the delivery; null: however long ago that was
 */
export function isBarred(entry: RawBuilder<unknown>, keptDays: number | null = null): RawBuilder<boolean> {
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

/**
 * Removes runs everywhere and bars every later revision of them. The epochs of all feeds go up with it: what a daemon has
 * on its way was judged before, and is void. May be repeated.
 */
export function eraseRuns(
  db: Kysely<unknown>,
  tables: Tables,
  scanIds: readonly string[],
): Promise<readonly ErasedRun[]> {
  return db.transaction().execute(async (tx) => {
    // In one order, so that two that erase do not wait for each other; before the clock, as every commit does.
    await lockFeeds(tx, tables);
    await sql`UPDATE ${tables.feeds} SET lease_epoch = lease_epoch + 1`.execute(tx);
    await lockClock(tx, tables);
    const ids = sql`${scanIds}::text[]`;
    const { rows } = await sql<ErasedRun>`
      WITH run AS (DELETE FROM ${tables.runs} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
      revision AS (DELETE FROM ${tables.runHistory} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
      entry AS (DELETE FROM ${tables.quarantine} WHERE scan_id = ANY (${ids}) RETURNING scan_id),
      -- An entry without a usable scan id may hold it all the same. What is emptied is not filled again.
      nameless AS (
        UPDATE ${tables.quarantine} AS entry SET payload = '', state = ${WITHOUT_CONTENT}
        FROM unnest(${ids}) AS named (scan_id)
        WHERE entry.scan_id IS NULL
          AND position(convert_to(to_json(named.scan_id)::text, 'UTF8') IN entry.payload) > 0
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
  });
}

/** Of an entry whose content is removed: it is not open any more, and stays what it was otherwise. */
const WITHOUT_CONTENT = sql`CASE WHEN entry.state = 'open' THEN 'discarded' ELSE entry.state END`;

/**
 * Removes up to `limit` runs that were delivered too long ago, with their superseded revisions; how many runs it found. One
 * whose delivery time is missing, or in the future, counts from when it was stored.
 */
export async function purgeRuns(db: Kysely<unknown>, tables: Tables, keptDays: number, limit: number): Promise<number> {
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
    await lockClock(tx, tables);
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
}

/** Removes up to `limit` revisions that were replaced too long ago; how many there were. */
export async function purgeHistory(
  db: Kysely<unknown>,
  tables: Tables,
  keptDays: number,
  limit: number,
): Promise<number> {
  const { rows } = await sql`
    DELETE FROM ${tables.runHistory} WHERE (scan_id, revision) IN (
      SELECT scan_id, revision FROM ${tables.runHistory} WHERE superseded_at < ${daysAgo(keptDays)} LIMIT ${limit})
    RETURNING scan_id`.execute(db);
  return rows.length;
}

/**
 * Removes the content of up to `limit` entries that came into quarantine too long ago; how many there were. The rows stay,
 * no longer open: so an entry that is delivered again does not bring its content back.
 */
export async function purgeQuarantine(
  db: Kysely<unknown>,
  tables: Tables,
  keptDays: number,
  limit: number,
): Promise<number> {
  const { rows } = await sql<{ id: string }>`
    SELECT id::text FROM ${tables.quarantine}
    WHERE first_seen_at < ${daysAgo(keptDays)} AND payload <> '' LIMIT ${limit}`.execute(db);
  if (rows.length === 0) return 0;
  await db.transaction().execute(async (tx) => {
    // As every commit does before it changes entries: two that change several must not wait for each other.
    await lockFeeds(tx, tables);
    await sql`
      UPDATE ${tables.quarantine} AS entry SET payload = '', state = ${WITHOUT_CONTENT}
      WHERE id = ANY (${rows.map(({ id }) => id)}::bigint[])`.execute(tx);
  });
  return rows.length;
}

async function lockFeeds(tx: Kysely<unknown>, tables: Tables): Promise<void> {
  await sql`SELECT FROM ${tables.feeds} ORDER BY name FOR NO KEY UPDATE`.execute(tx);
}

/** Numbers of removals are drawn in the order of commits, like those of runs. */
async function lockClock(tx: Kysely<unknown>, tables: Tables): Promise<void> {
  const { rows } = await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(tx);
  if (rows.length === 0) await sql`SELECT ${tables.refuseMissingClock}`.execute(tx);
}
