import { type RawBuilder, sql } from 'kysely';
import { MAX_REVISION } from '../../core/run-fields.js';
import type { PendingReason, PendingStore, PostponedTry, StoredResult } from '../../sync/ports/index.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { lockHeld } from '../tables/lease-columns.js';

/** Time without a leader after which a feed counts as gone and another one retries its pending results. */
const GONE_AFTER = sql.lit('1 day');
/** Maximum number of results that are adopted in one statement. */
const ADOPTED_PER_BATCH = sql.lit(1_000);

/** For a pending row of `runs`: its result was not given up. */
export const IS_RETRIED = sql<boolean>`next_try_at < 'infinity'`;

/** Columns of a pending row of `runs`. */
export const PENDING_RUN = [
  'scan_id as scanId',
  'revision',
  'status',
  sql<PendingReason>`pending_reason`.as('reason'),
  'attempts',
  sql<number>`extract(epoch FROM clock_timestamp() - pending_since)::double precision * 1000`.as('pendingForMs'),
] as const;

/** Creates the engine's access to pending results. */
export function createPendingRetries({ db, tables }: StoreConnection): PendingStore {
  return {
    /** Omits scans that are not stored. Deleted runs count as complete: their results must not be loaded. */
    async findStored(scanIds) {
      const { rows } = await sql<StoredResult>`
        SELECT scan_id AS "scanId", revision,
          result_state = 'complete' AND (status = 'failed' OR data IS NOT NULL) AS complete,
          markdown IS NOT NULL OR markdown_absent AS "markdownKnown"
        FROM ${tables.runs} WHERE scan_id = ANY (${scanIds}::text[])
        UNION ALL
        SELECT scan_id, COALESCE(revision, ${MAX_REVISION}), true, true
        FROM ${tables.deletedRuns} WHERE scan_id = ANY (${scanIds}::text[])`.execute(db);
      return rows;
    },

    duePending: (feed, limit) =>
      db
        .selectFrom('runs')
        .select(PENDING_RUN)
        .where('feed', '=', feed)
        .where('result_state', '=', 'pending')
        .where('next_try_at', '<=', sql<Date>`clock_timestamp()`)
        .orderBy(sql`pending_reason <> 'no_memory'`)
        .orderBy('next_try_at')
        .limit(limit)
        .execute(),

    /** The time of the next try does not change. */
    async adoptPending(lease) {
      const { rows } = await sql`
        WITH held AS MATERIALIZED (${lockHeld(tables, lease)}),
        present AS (
          SELECT other.name FROM ${tables.feeds} AS other JOIN ${tables.feeds} AS own ON own.name = ${lease.feed}
          WHERE other.name = own.name OR other.base_url <> own.base_url OR NOT ${isGone('other')}
        ),
        orphaned AS (
          SELECT scan_id, feed FROM ${tables.runs}
          WHERE EXISTS (SELECT FROM held) AND result_state = 'pending' AND feed NOT IN (SELECT name FROM present)
          ORDER BY scan_id LIMIT ${ADOPTED_PER_BATCH}
        ),
        -- Like every writer of runs, before it locks any of them.
        number_lock AS MATERIALIZED (SELECT ${tables.lockChangeClock} AS locked WHERE EXISTS (SELECT FROM orphaned))
        UPDATE ${tables.runs} AS run
        SET feed = ${lease.feed}, synced_at = statement_timestamp(), change_seq = ${tables.nextChange}
        FROM number_lock CROSS JOIN orphaned
        WHERE run.scan_id = orphaned.scan_id AND run.feed = orphaned.feed AND run.result_state = 'pending'
        RETURNING run.scan_id`.execute(db);
      return rows.length;
    },

    /** Reports see no change of these runs, so it draws no `change_seq`. */
    async postponePending(lease, tries) {
      const { rows } = await sql<{ held: boolean }>`
        WITH held AS MATERIALIZED (${lockHeld(tables, lease)}),
        postponed AS (
          UPDATE ${tables.runs} AS run SET
            attempts = run.attempts + 1,
            pending_reason = failed.reason,
            next_try_at = clock_timestamp() + failed.next_try_in_ms * interval '1 millisecond'
          FROM jsonb_to_recordset(${rowsOf(tries)}::jsonb) AS failed (
            scan_id text, revision integer, reason text, next_try_in_ms double precision
          )
          WHERE EXISTS (SELECT FROM held) AND run.scan_id = failed.scan_id AND run.revision = failed.revision
            AND run.result_state = 'pending' AND ${IS_RETRIED}
        )
        SELECT EXISTS (SELECT FROM held) AS held`.execute(db);
      return rows[0]?.held ?? false;
    },
  };
}

/** Orphaned pending results: no process retries them. */
export interface OrphanedResults {
  readonly feed: string;
  readonly baseUrl: string;
  readonly results: number;
}

/**
 * Returns the pending results of feeds that had no leader for a day and that no other feed adopts, because no feed with a leader
 * has their address: they belong to another service.
 */
export async function findOrphaned({ db, tables }: StoreConnection): Promise<readonly OrphanedResults[]> {
  const { rows } = await sql<OrphanedResults>`
    SELECT gone.name AS feed, gone.base_url AS "baseUrl", count(*)::int AS results
    FROM ${tables.feeds} AS gone JOIN ${tables.runs} AS run ON run.feed = gone.name
    WHERE run.result_state = 'pending' AND ${IS_RETRIED} AND ${isGone('gone')} AND NOT EXISTS (
      SELECT FROM ${tables.feeds} AS present WHERE present.base_url = gone.base_url AND NOT ${isGone('present')})
    GROUP BY gone.name ORDER BY gone.name`.execute(db);
  return rows;
}

/** For a row of `feeds`: it counts as gone. */
function isGone(feed: string): RawBuilder<boolean> {
  const column = (name: string) => sql.ref(`${feed}.${name}`);
  return sql`(GREATEST(${column('lease_expires_at')}, ${column('last_commit_at')}, ${column('created_at')})
        <= clock_timestamp() - interval ${GONE_AFTER})`;
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
