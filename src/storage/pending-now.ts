import { type Kysely, sql } from 'kysely';
import type { PendingRun } from '../sync/ports.js';
import { IS_RETRIED } from './given-up.js';
import type { Tables } from './schema.js';

/** Scan ids of all pending results of a feed that were not given up, the longest waiting first. */
export async function listPendingScans(db: Kysely<unknown>, tables: Tables, feed: string): Promise<readonly string[]> {
  const { rows } = await sql<{ scan_id: string }>`
    SELECT scan_id FROM ${tables.runs}
    WHERE feed = ${feed} AND result_state = 'pending' AND ${IS_RETRIED} ORDER BY pending_since, scan_id`.execute(db);
  return rows.map((row) => row.scan_id);
}

/** Those of the scans that are stored, by whichever feed. */
export async function findScans(
  db: Kysely<unknown>,
  tables: Tables,
  scanIds: readonly string[],
): Promise<readonly { readonly scanId: string; readonly feed: string; readonly revision: number }[]> {
  const { rows } = await sql<{ scanId: string; feed: string; revision: number }>`
    SELECT scan_id AS "scanId", feed, revision FROM ${tables.runs} WHERE scan_id = ANY (${scanIds}::text[])`.execute(
    db,
  );
  return rows;
}

/** Makes those of the scans that are pending due for a try at once, in no order, those that were given up included; no change of the run as reports see it. */
export async function makePendingDue(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  scanIds: readonly string[],
): Promise<readonly PendingRun[]> {
  const { rows } = await sql<PendingRun>`
    UPDATE ${tables.runs} SET next_try_at = LEAST(next_try_at, clock_timestamp())
    WHERE feed = ${feed} AND result_state = 'pending' AND scan_id = ANY (${scanIds}::text[])
    RETURNING scan_id AS "scanId", revision, status, pending_reason AS reason, attempts,
      extract(epoch FROM clock_timestamp() - pending_since)::double precision * 1000 AS "pendingForMs"`.execute(db);
  return rows;
}
