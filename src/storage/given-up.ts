import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** Of a pending row of `runs`: its result was not given up. */
export const IS_RETRIED = sql`next_try_at < 'infinity'`;

/**
 * Gives up loading those of the scans that are pending: they stay as they are, and are neither retried nor counted until
 * somebody tries them by name. What is delivered later counts as ever. No change of the run as reports see it.
 * @returns the scan ids of those that are given up now
 */
export async function giveUpPending(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  scanIds: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await sql<{ scan_id: string }>`
    UPDATE ${tables.runs} SET next_try_at = 'infinity'
    WHERE feed = ${feed} AND result_state = 'pending' AND scan_id = ANY (${scanIds}::text[])
    RETURNING scan_id`.execute(db);
  return rows.map((row) => row.scan_id);
}
