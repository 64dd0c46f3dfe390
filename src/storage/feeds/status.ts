import { type RawBuilder, sql } from 'kysely';
import { MAX_COUNTED } from '../../core/counts.js';
import type { FeedStatus, LeaseGrant, LeaseRenewal, StatusStore } from '../../sync/ports/index.js';
import { createDatabaseClock, DATABASE_MS } from '../connection/database-clock.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { historyIsComplete } from '../passes/passes.js';
import { IS_RETRIED } from '../runs/pending.js';
import { ACCEPTS_BAD_UNTIL, isHeld, LEADER, leasesIn, renewLease } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';

interface StatusRow extends Omit<FeedStatus, 'readAt'> {
  readonly name: string;
  readonly database_ms: number;
}

type RenewalRow = StatusRow & Omit<LeaseRenewal, 'status'>;

const NEVER_STARTED: Omit<FeedStatus, 'readAt'> = {
  dataCompleteAsOf: null,
  lagMs: null,
  lastPollAt: null,
  lastCommitAt: null,
  lastDeliveredAt: null,
  endReached: false,
  stuckSince: null,
  acceptsBadUntil: null,
  backfillComplete: false,
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
  const readStatuses = async (feeds: readonly string[]) => {
    const readAt = monotonic();
    const { rows } = await sql<StatusRow>`
      WITH ${counts(tables, feeds)}
      SELECT name, ${figures(tables)}, ${DATABASE_MS}
      FROM ${tables.feeds} AS feed ${JOINED_COUNTS} WHERE name ${isOneOf(feeds)}`.execute(db);
    databaseClock.note(rows[0]);
    const found = new Map(rows.map((row) => [row.name, statusOf(row, readAt)]));
    return new Map(feeds.map((feed) => [feed, found.get(feed) ?? { readAt, ...NEVER_STARTED }]));
  };

  /**
   * Extends leases, and reads all that an idle daemon needs, in one statement.
   * @param waits whether to wait for commits; otherwise, a lease whose row is locked is reported but not extended
   */
  const renew = async (leases: readonly LeaseGrant[], ttlMs: number, waits: boolean) => {
    const feeds = leases.map(({ feed }) => feed);
    const readAt = monotonic();
    const { rows } = await sql<RenewalRow>`
      WITH ${counts(tables, feeds)},
      unfinished AS MATERIALIZED (
        SELECT feed AS unfinished_of, array_agg(DISTINCT kind) AS kinds FROM ${tables.passes}
        WHERE feed ${isOneOf(feeds)} AND finished_at IS NULL GROUP BY feed
      ),
      ${heldLeases(tables, leases, ttlMs, waits)}
      SELECT name, ${figures(tables)}, ${DATABASE_MS}, COALESCE(kinds, '{}') AS unfinished,
        extract(epoch FROM lease_expires_at - clock_timestamp())::double precision * 1000 AS "heldForMs"
      FROM held AS feed ${JOINED_COUNTS} LEFT JOIN unfinished ON unfinished_of = name`.execute(db);
    databaseClock.note(rows[0]);
    return new Map(
      rows.map(({ unfinished, heldForMs, ...row }) => [
        row.name,
        { status: statusOf(row, readAt), unfinished, heldForMs },
      ]),
    );
  };

  return {
    readStatuses,
    readStatus: async (feed) => (await readStatuses([feed])).get(feed) as FeedStatus,
    renewLease: async (lease, ttlMs) => (await renew([lease], ttlMs, true)).get(lease.feed) ?? null,
    renewLeases: (leases, ttlMs) => renew(leases, ttlMs, false),
  };
}

function statusOf({ name: _, database_ms: __, ...figures }: StatusRow, readAt: number): FeedStatus {
  return { readAt, ...figures };
}

/** Always true, but forces the counts to be computed before the rows of `feeds` are locked, since commits wait for these locks. */
const IS_COUNTED = sql`(SELECT count(*) FROM counted) + (SELECT count(*) FROM unfinished) >= 0`;

/** Parts of the statement: extends the leases that are still held, and returns the rows of their feeds as `held`. */
function heldLeases(tables: Tables, leases: readonly LeaseGrant[], ttlMs: number, waits: boolean): RawBuilder<unknown> {
  const column = (read: (lease: LeaseGrant) => string | number) => sql`${leases.map(read)}`;
  const isGranted = isHeld(leasesIn('granted'));
  return sql`granted AS MATERIALIZED (
        SELECT * FROM unnest(${column(({ feed }) => feed)}::text[], ${column(({ epoch }) => epoch)}::bigint[],
          ${column(({ holder }) => holder)}::text[]) AS lease (feed, epoch, holder)
      ),
      locked AS MATERIALIZED (
        SELECT name FROM ${tables.feeds} AS feed JOIN granted ON ${isGranted} WHERE ${IS_COUNTED}
        FOR NO KEY UPDATE OF feed ${waits ? sql`` : sql`SKIP LOCKED`}
      ),
      extended AS (
        UPDATE ${tables.feeds} AS feed SET ${renewLease(ttlMs)} FROM locked WHERE feed.name = locked.name
        RETURNING feed.*
      ),
      held AS (
        SELECT * FROM extended
        UNION ALL
        SELECT feed.* FROM ${tables.feeds} AS feed JOIN granted ON ${isGranted}
        WHERE name NOT IN (SELECT name FROM locked) AND NOT ${waits} -- this row is of the snapshot before the wait
      )`;
}

/** For a row `feed` with its counts. */
function figures(tables: Tables): RawBuilder<unknown> {
  return sql`data_complete_as_of AS "dataCompleteAsOf",
          extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS "lagMs",
          last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", last_delivered_at AS "lastDeliveredAt", stuck_since AS "stuckSince",
          ${ACCEPTS_BAD_UNTIL} AS "acceptsBadUntil", end_reached_at IS NOT NULL AS "endReached", ${historyIsComplete(tables)} AS "backfillComplete",
          ${LEADER} AS "leaseHolder", CASE WHEN last_commit_at IS NOT NULL THEN base_url END AS "baseUrl",
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

const JOINED_COUNTS = sql`JOIN counted ON counted_of = name`;
