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

/** What is read of a feed that no process has taken yet. */
const NEVER_TAKEN: Omit<FeedStatus, 'readAt'> = {
  dataCompleteAsOf: null,
  lagMs: null,
  lastPollAt: null,
  lastCommitAt: null,
  lastDeliveredAt: null,
  endReached: false,
  stuckSince: null,
  acceptsBadUntil: null,
  initialSyncComplete: false,
  pendingResults: 0,
  quarantinedEntries: 0,
  runsWithoutData: 0,
  leaseHolder: null,
  baseUrl: null,
};

/** Creates the access to the status of feeds, which is the same for all replicas. */
export function createStatus(
  { db, tables }: StoreConnection,
  monotonic: () => number,
  databaseClock = createDatabaseClock(monotonic),
): StatusStore {
  const readFeeds = async (feeds: readonly string[]) => {
    const readAt = monotonic();
    const { rows } = await sql<Row>`
      WITH ${counts(tables, feeds)},
      unfinished AS MATERIALIZED (
        SELECT feed AS unfinished_of, array_agg(DISTINCT kind) AS kinds FROM ${tables.passes}
        WHERE feed ${isOneOf(feeds)} AND finished_at IS NULL GROUP BY feed
      )
      SELECT name, lease_holder AS holder, lease_epoch AS epoch, ${figures(tables)}, ${DATABASE_MS},
        COALESCE(kinds, '{}') AS unfinished
      FROM ${tables.feeds} AS feed JOIN counted ON counted_of = name LEFT JOIN unfinished ON unfinished_of = name
      WHERE name ${isOneOf(feeds)}`.execute(db);
    databaseClock.note(rows[0]);
    const found = new Map(rows.map((row) => [row.name, storedFeed(row, readAt)]));
    const never = { status: { readAt, ...NEVER_TAKEN }, holder: null, epoch: 0, unfinished: [] };
    return new Map(feeds.map((feed) => [feed, found.get(feed) ?? never]));
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

/** For a row `feed` with its counts. */
function figures(tables: Tables): RawBuilder<unknown> {
  return sql`${STILL_COMPLETE_AS_OF} AS "dataCompleteAsOf",
          extract(epoch FROM clock_timestamp() - ${STILL_COMPLETE_AS_OF})::double precision * 1000 AS "lagMs",
          last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", last_delivered_at AS "lastDeliveredAt", stuck_since AS "stuckSince",
          ${ACCEPTS_BAD_UNTIL} AS "acceptsBadUntil", end_reached_at IS NOT NULL AS "endReached", ${initialSyncIsComplete(tables)} AS "initialSyncComplete",
          CASE WHEN ${isLed(tables)} THEN lease_holder END AS "leaseHolder", CASE WHEN last_commit_at IS NOT NULL THEN base_url END AS "baseUrl",
          pending_results AS "pendingResults", quarantined_entries AS "quarantinedEntries",
          runs_without_data AS "runsWithoutData"`;
}

/** With one feed, the server can reuse one plan; a plan for an array depends on its length. */
function isOneOf(feeds: readonly string[]): RawBuilder<boolean> {
  return feeds.length === 1 ? sql`= ${feeds[0]}` : sql`= ANY (${feeds}::text[])`;
}

/** Counts by feed, each by a partial index and up to a maximum. Counting a million pending results would take 0.6 s each time. */
function counts(tables: Tables, feeds: readonly string[]): RawBuilder<unknown> {
  const upToMax = (rows: RawBuilder<unknown>) =>
    sql`(SELECT count(*)::int FROM (${rows} LIMIT ${sql.lit(MAX_COUNTED)}) AS found)`;
  return sql`counted AS MATERIALIZED (
        SELECT name AS counted_of,
          ${upToMax(sql`SELECT FROM ${tables.runs} WHERE feed = led.name AND result_state = 'pending' AND ${IS_RETRIED}`)} AS pending_results,
          ${upToMax(sql`SELECT FROM ${tables.quarantine} WHERE feed = led.name AND state = 'open'`)} AS quarantined_entries,
          ${upToMax(sql`SELECT FROM ${tables.runs}
            WHERE feed = led.name AND status = 'completed' AND result_state = 'complete' AND data IS NULL`)} AS runs_without_data
        FROM ${tables.feeds} AS led WHERE name ${isOneOf(feeds)}
      )`;
}
