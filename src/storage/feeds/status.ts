import { type RawBuilder, sql } from 'kysely';
import type { FeedStatus, FeedStore, LeaseRenewal } from '../../sync/ports/index.js';
import { isHeld, LEADER } from '../commit/fence.js';
import { createDatabaseClock, DATABASE_MS } from '../connection/database-clock.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { historyIsComplete } from '../passes/passes.js';
import { IS_RETRIED } from '../runs/pending.js';
import type { Tables } from '../schema/schema.js';

interface StatusRow extends Omit<FeedStatus, 'readAt'> {
  readonly database_ms: number;
}

const NEVER_STARTED: Omit<FeedStatus, 'readAt'> = {
  dataCompleteAsOf: null,
  lagMs: null,
  lastPollAt: null,
  lastCommitAt: null,
  endReached: false,
  stuckSince: null,
  backfillComplete: false,
  pendingResults: 0,
  quarantinedEntries: 0,
  leaseHolder: null,
};

/** Creates the access to the status of a feed, which is the same for all replicas. */
export function createStatus(
  { db, tables }: StoreConnection,
  monotonic: () => number,
  databaseClock = createDatabaseClock(monotonic),
): Pick<FeedStore, 'readStatus' | 'renewLease'> {
  return {
    async readStatus(feed) {
      const readAt = monotonic();
      const { rows } = await sql<StatusRow>`
        SELECT ${feedColumns(tables)}, ${counts(tables, feed)}, ${DATABASE_MS}
        FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
      const row = databaseClock.note(rows[0]);
      if (row === undefined) return { readAt, ...NEVER_STARTED };
      const { database_ms: _, ...figures } = row;
      return { readAt, ...figures };
    },

    /** One statement for all that a daemon at rest asks regularly. */
    async renewLease(lease, ttlMs) {
      const readAt = monotonic();
      const { rows } = await sql<StatusRow & Pick<LeaseRenewal, 'unfinished'>>`
        WITH counted AS MATERIALIZED (
          SELECT ${counts(tables, lease.feed)}
        ),
        feed AS (
          UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() + ${ttlMs} * interval '1 millisecond'
          -- Counts before it locks the row, since commits wait for that lock.
          WHERE ${isHeld(lease)} AND EXISTS (SELECT FROM counted)
          RETURNING *
        )
        SELECT ${feedColumns(tables)}, counted.*, ${DATABASE_MS}, ARRAY(
          SELECT DISTINCT kind FROM ${tables.passes} AS pass
          WHERE pass.feed = feed.name AND finished_at IS NULL
        ) AS unfinished
        FROM feed CROSS JOIN counted`.execute(db);
      const row = databaseClock.note(rows[0]);
      if (row === undefined) return null;
      const { database_ms: _, unfinished, ...figures } = row;
      return { status: { readAt, ...figures }, unfinished };
    },
  };
}

/** For a row `feed`. */
function feedColumns(tables: Tables): RawBuilder<unknown> {
  return sql`data_complete_as_of AS "dataCompleteAsOf",
          extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS "lagMs",
          last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", stuck_since AS "stuckSince",
          end_reached_at IS NOT NULL AS "endReached", ${historyIsComplete(tables)} AS "backfillComplete",
          ${LEADER} AS "leaseHolder"`;
}

/** Takes 0.6 s for a million pending results. */
function counts(tables: Tables, feed: string): RawBuilder<unknown> {
  return sql`(SELECT count(*)::int FROM ${tables.runs}
            WHERE feed = ${feed} AND result_state = 'pending' AND ${IS_RETRIED}) AS "pendingResults",
          (SELECT count(*)::int FROM ${tables.quarantine}
            WHERE feed = ${feed} AND state = 'open') AS "quarantinedEntries"`;
}
