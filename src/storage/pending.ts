import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LeaseGrant, PendingRun, PostponedTry, StoredResult } from '../sync/ports.js';
import { fenceOnEpoch } from './fence.js';
import { IS_RETRIED } from './given-up.js';
import type { Tables } from './schema.js';

const HIGHEST_REVISION = 2 ** 31 - 1;

/**
 * What is stored of these scans; scans that are not stored are left out. What was removed counts as complete: nothing of it
 * is to be loaded.
 */
export async function findStored(
  db: Kysely<unknown>,
  tables: Tables,
  scanIds: readonly string[],
): Promise<readonly StoredResult[]> {
  const { rows } = await sql<{ scan_id: string; revision: number; complete: boolean; markdown_known: boolean }>`
    SELECT scan_id, revision, result_state = 'complete' AND (status = 'failed' OR data IS NOT NULL) AS complete,
      markdown IS NOT NULL OR markdown_absent AS markdown_known
    FROM ${tables.runs} WHERE scan_id = ANY (${scanIds}::text[])
    UNION ALL
    SELECT scan_id, COALESCE(revision, ${HIGHEST_REVISION}), true, true
    FROM ${tables.deletedRuns} AS deleted WHERE scan_id = ANY (${scanIds}::text[])
      AND NOT EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = deleted.scan_id)`.execute(db);
  return rows.map((row) => ({
    scanId: row.scan_id,
    revision: row.revision,
    complete: row.complete,
    markdownKnown: row.markdown_known,
  }));
}

/** Pending runs of the feed whose next try is due: those that a page left for want of memory, then the longest overdue. */
export async function duePending(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  limit: number,
): Promise<readonly PendingRun[]> {
  const { rows } = await sql<PendingRun>`
    SELECT scan_id AS "scanId", revision, status, pending_reason AS reason, attempts,
      extract(epoch FROM clock_timestamp() - pending_since)::double precision * 1000 AS "pendingForMs"
    FROM ${tables.runs}
    WHERE feed = ${feed} AND result_state = 'pending' AND next_try_at <= clock_timestamp()
    ORDER BY pending_reason <> 'no_memory', next_try_at
    LIMIT ${limit}`.execute(db);
  return rows;
}

/** A feed that no process has led for this long is not expected back: another one retries its pending results. */
const GONE_AFTER = sql.lit('1 day');
/** Taken over in one statement, at most. */
const ADOPTED_AT_ONCE = sql.lit(1_000);

/**
 * Takes over pending runs of feeds that are gone, or that have the address of this one and no leader for a day: a feed
 * that was renamed or retired. They stay due as they are. No change of the run as reports see it.
 */
export async function adoptPending(db: Kysely<unknown>, tables: Tables, lease: LeaseGrant): Promise<number> {
  const { rows } = await sql`
    WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)}),
    present AS (
      SELECT other.name FROM ${tables.feeds} AS other JOIN ${tables.feeds} AS own ON own.name = ${lease.feed}
      WHERE other.name = own.name OR other.base_url <> own.base_url OR NOT ${isGone('other')}
    ),
    orphaned AS (
      SELECT scan_id FROM ${tables.runs}
      WHERE EXISTS (SELECT FROM fence) AND result_state = 'pending' AND feed NOT IN (SELECT name FROM present)
      ORDER BY scan_id LIMIT ${ADOPTED_AT_ONCE}
      FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE ${tables.runs} AS run SET feed = ${lease.feed} FROM orphaned WHERE run.scan_id = orphaned.scan_id
    RETURNING run.scan_id`.execute(db);
  return rows.length;
}

/** Pending results that no process retries. */
export interface StrandedResults {
  readonly feed: string;
  readonly baseUrl: string;
  readonly results: number;
}

/**
 * Pending results of feeds that no process has led for a day, and that no feed takes over, since none that is led has their
 * address: the service that has them is not the present one.
 */
export async function findStranded(db: Kysely<unknown>, tables: Tables): Promise<readonly StrandedResults[]> {
  const { rows } = await sql<StrandedResults>`
    SELECT gone.name AS feed, gone.base_url AS "baseUrl", count(*)::int AS results
    FROM ${tables.feeds} AS gone JOIN ${tables.runs} AS run ON run.feed = gone.name
    WHERE run.result_state = 'pending' AND ${IS_RETRIED} AND ${isGone('gone')} AND NOT EXISTS (
      SELECT FROM ${tables.feeds} AS present WHERE present.base_url = gone.base_url AND NOT ${isGone('present')})
    GROUP BY gone.name ORDER BY gone.name`.execute(db);
  return rows;
}

/** Of a row of `feeds`: it is not expected back. */
function isGone(feed: string): RawBuilder<boolean> {
  const column = (name: string) => sql.ref(`${feed}.${name}`);
  return sql`(GREATEST(${column('lease_expires_at')}, ${column('last_commit_at')}, ${column('created_at')})
        <= clock_timestamp() - interval ${GONE_AFTER})`;
}

/** Notes failed tries. No change of the run as reports see it, so it draws no `change_seq`. False: the lease was lost. */
export async function postponePending(
  db: Kysely<unknown>,
  tables: Tables,
  lease: LeaseGrant,
  tries: readonly PostponedTry[],
): Promise<boolean> {
  const { rows } = await sql<{ held: boolean }>`
    WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)}),
    postponed AS (
      UPDATE ${tables.runs} AS run SET
        attempts = run.attempts + 1,
        pending_reason = failed.reason,
        next_try_at = clock_timestamp() + failed.next_try_in_ms * interval '1 millisecond'
      FROM jsonb_to_recordset(${rowsOf(tries)}::jsonb) AS failed (
        scan_id text, revision integer, reason text, next_try_in_ms double precision
      )
      WHERE EXISTS (SELECT FROM fence) AND run.scan_id = failed.scan_id AND run.revision = failed.revision
        AND run.result_state = 'pending' AND ${IS_RETRIED}
    )
    SELECT EXISTS (SELECT FROM fence) AS held`.execute(db);
  return rows[0]?.held ?? false;
}

function rowsOf(tries: readonly PostponedTry[]): string {
  return JSON.stringify(
    tries.map((failed) => ({
      scan_id: failed.scanId,
      revision: failed.revision,
      reason: failed.reason,
      next_try_in_ms: failed.nextTryInMs,
    })),
  );
}
