import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** Of a pending row of `runs`: its result was not given up. */
export const IS_RETRIED = sql`next_try_at < 'infinity'`;

/**
 * Gives up loading those of the revisions that are pending: they stay as they are, and are neither retried nor counted until
 * somebody tries them by name. What is delivered later counts as ever, meanwhile too. No change of the run as reports see
 * it. They are locked in the order of the commits.
 * @param asked the revision of each scan that is meant
 * @returns the scan ids of those that are given up now
 */
export async function giveUpPending(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  asked: ReadonlyMap<string, number>,
): Promise<readonly string[]> {
  const { rows } = await sql<{ scan_id: string }>`
    WITH meant AS (
      SELECT scan_id FROM ${tables.runs}
      JOIN unnest(${[...asked.keys()]}::text[], ${[...asked.values()]}::int[]) AS asked (scan_id, revision)
        USING (scan_id, revision)
      WHERE feed = ${feed} AND result_state = 'pending'
      ORDER BY scan_id
      FOR NO KEY UPDATE OF runs
    )
    UPDATE ${tables.runs} AS run SET next_try_at = 'infinity'
    FROM meant WHERE run.scan_id = meant.scan_id
    RETURNING run.scan_id`.execute(db);
  return rows.map((row) => row.scan_id);
}
