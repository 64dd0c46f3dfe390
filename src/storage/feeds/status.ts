import { type RawBuilder, sql } from 'kysely';
import { MAX_COUNTED } from '../../core/counts.js';
import type { FeedStatus, PassKind, StatusStore, StoredFeed } from '../../sync/ports/index.js';
import { createDatabaseClock, DATABASE_MS } from '../connection/database-clock.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { initialSyncIsComplete } from '../passes/passes.js';
import { IS_RETRIED } from '../runs/pending.js';
import { ACCEPTS_BAD_UNTIL, isLed, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';

interface Row extends Omit<FeedStatus, 'readAt'> {
  readonly name: string;
  readonly holder: string | null;
  readonly epoch: string;
  readonly unfinished: readonly PassKind[];
  readonly database_ms: number;
}

/** Creates the access to the status of feeds, which is the same for all replicas. */
export function createStatus(
  { db, tables }: StoreConnection,
  monotonic: () => number,
  databaseClock = createDatabaseClock(monotonic),
): StatusStore {
  const readFeeds = async (feeds: readonly string[]) => {
    const readAt = monotonic();
    const { rows } = await sql<Row>`
      SELECT followed.name, lease_holder AS holder, COALESCE(lease_epoch, 0) AS epoch, ${figures(tables)}, ${DATABASE_MS},
        ARRAY(SELECT DISTINCT kind FROM ${tables.passes} WHERE feed = followed.name AND finished_at IS NULL) AS unfinished
      -- Names as JSON: the server reuses one plan for any number of them. The estimate of an array depends on its length.
      FROM jsonb_array_elements_text(${JSON.stringify(feeds)}::jsonb) AS followed (name)
        LEFT JOIN ${tables.feeds} AS feed ON feed.name = followed.name`.execute(db);
    databaseClock.note(rows[0]);
    return new Map(rows.map((row) => [row.name, storedFeed(row, readAt)]));
  };

  return {
    readFeeds,
    readStatus: async (feed) => ((await readFeeds([feed])).get(feed) as StoredFeed).status,
    forgetFreshness: async (holder) => {
      // Waits for no commit. That of a page forgets it too.
      await sql`
        UPDATE ${tables.feeds} SET data_complete_as_of = NULL WHERE name IN (
          SELECT name FROM ${tables.feeds} WHERE lease_holder = ${holder} FOR NO KEY UPDATE SKIP LOCKED)`.execute(db);
    },
  };
}

function storedFeed(
  { name: _, database_ms: __, holder, epoch, unfinished, ...figures }: Row,
  readAt: number,
): StoredFeed {
  return { status: { readAt, ...figures }, holder, epoch: Number(epoch), unfinished };
}

/**
 * For the name of a feed and its row `feed`, null if no process has taken it yet. Counts by partial indexes and up to a maximum:
 * counting a million pending results would take 0.6 s each time.
 */
function figures(tables: Tables): RawBuilder<unknown> {
  const count = (rows: RawBuilder<unknown>) =>
    sql`(SELECT count(*)::int FROM (${rows} LIMIT ${sql.lit(MAX_COUNTED)}) AS counted)`;
  return sql`${STILL_COMPLETE_AS_OF} AS "dataCompleteAsOf",
          extract(epoch FROM clock_timestamp() - ${STILL_COMPLETE_AS_OF})::double precision * 1000 AS "lagMs",
          last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", last_delivered_at AS "lastDeliveredAt", stuck_since AS "stuckSince",
          ${ACCEPTS_BAD_UNTIL} AS "acceptsBadUntil", end_reached_at IS NOT NULL AS "endReached", ${initialSyncIsComplete(tables)} AS "initialSyncComplete",
          CASE WHEN ${isLed(tables)} THEN lease_holder END AS "leaseHolder", CASE WHEN last_commit_at IS NOT NULL THEN base_url END AS "baseUrl",
          ${count(sql`SELECT FROM ${tables.runs} WHERE feed = followed.name AND result_state = 'pending' AND ${IS_RETRIED}`)} AS "pendingResults",
          ${count(sql`SELECT FROM ${tables.quarantine} WHERE feed = followed.name AND state = 'open'`)} AS "quarantinedEntries",
          ${count(sql`SELECT FROM ${tables.runs}
            WHERE feed = followed.name AND status = 'completed' AND result_state = 'complete' AND data IS NULL`)} AS "runsWithoutData"`;
}
