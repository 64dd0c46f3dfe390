import { type Kysely, sql } from 'kysely';
import type { FeedStatus } from '../sync/ports.js';
import { createDatabaseClock, DATABASE_MS } from './database-clock.js';
import { IS_RETRIED } from './given-up.js';
import { backfillIsComplete } from './passes.js';
import type { Tables } from './schema.js';

interface StatusRow {
  data_complete_as_of: Date | null;
  lag_ms: number | null;
  last_poll_at: Date | null;
  last_commit_at: Date | null;
  end_reached: boolean;
  stuck_since: Date | null;
  backfill_complete: boolean;
  pending_results: number;
  quarantined_entries: number;
  lease_holder: string | null;
  database_ms: number;
}

/** The figures that every replica reports alike; those of a feed that has never run are empty. */
export async function readStatus(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  monotonic: () => number,
  databaseClock = createDatabaseClock(monotonic),
): Promise<FeedStatus> {
  const readAt = monotonic();
  const { rows } = await sql<StatusRow>`
    SELECT data_complete_as_of,
      extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS lag_ms,
      last_poll_at, last_commit_at, stuck_since,
      end_reached_at IS NOT NULL AS end_reached, ${backfillIsComplete(tables)} AS backfill_complete,
      (SELECT count(*)::int FROM ${tables.runs} AS run
        WHERE run.feed = feed.name AND run.result_state = 'pending' AND ${IS_RETRIED}) AS pending_results,
      (SELECT count(*)::int FROM ${tables.quarantine} AS entry
        WHERE entry.feed = feed.name AND entry.state = 'open') AS quarantined_entries,
      CASE WHEN lease_expires_at > clock_timestamp() THEN lease_holder END AS lease_holder, ${DATABASE_MS}
    FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
  const row = databaseClock.note(rows[0]);
  return {
    readAt,
    dataCompleteAsOf: row?.data_complete_as_of ?? null,
    lagMs: row?.lag_ms ?? null,
    lastPollAt: row?.last_poll_at ?? null,
    lastCommitAt: row?.last_commit_at ?? null,
    endReached: row?.end_reached ?? false,
    stuckSince: row?.stuck_since ?? null,
    backfillComplete: row?.backfill_complete ?? false,
    pendingResults: row?.pending_results ?? 0,
    quarantinedEntries: row?.quarantined_entries ?? 0,
    leaseHolder: row?.lease_holder ?? null,
  };
}
