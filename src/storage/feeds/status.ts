import { type RawBuilder, sql } from 'kysely';
import type { FeedStatus, FeedStore, LeaseGrant, LeaseRenewal } from '../../sync/ports/index.js';
import { LEADER } from '../commit/fence.js';
import { createDatabaseClock, DATABASE_MS } from '../connection/database-clock.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { historyIsComplete } from '../passes/passes.js';
import { IS_RETRIED } from '../runs/pending.js';
import type { Tables } from '../schema/schema.js';

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
  endReached: false,
  stuckSince: null,
  backfillComplete: false,
  pendingResults: 0,
  quarantinedEntries: 0,
  leaseHolder: null,
  baseUrl: null,
};

/** Creates the access to the status of feeds, which is the same for all replicas. */
export function createStatus(
  { db, tables }: StoreConnection,
  monotonic: () => number,
  databaseClock = createDatabaseClock(monotonic),
): Pick<FeedStore, 'readStatus' | 'readStatuses' | 'renewLease' | 'renewLeases'> {
  const readStatuses = async (feeds: readonly string[]) => {
    const readAt = monotonic();
    const { rows } = await sql<StatusRow>`
      WITH ${counts(tables, feeds)}
      SELECT name, ${figures(tables)}, ${DATABASE_MS}
      FROM ${tables.feeds} AS feed ${JOINED_COUNTS} WHERE name = ANY (${feeds}::text[])`.execute(db);
    databaseClock.note(rows[0]);
    const found = new Map(rows.map((row) => [row.name, statusOf(row, readAt)]));
    return new Map(feeds.map((feed) => [feed, found.get(feed) ?? { readAt, ...NEVER_STARTED }]));
  };

  /** One statement for all that a daemon at rest asks regularly. @param waits whether it waits for rows that commits have locked */
  const renew = async (leases: readonly LeaseGrant[], ttlMs: number, waits: boolean) => {
    const readAt = monotonic();
    const feeds = leases.map(({ feed }) => feed);
    const { rows } = await sql<RenewalRow>`
      WITH granted AS MATERIALIZED (
        SELECT * FROM unnest(${feeds}::text[], ${leases.map(({ epoch }) => epoch)}::bigint[],
          ${leases.map(({ holder }) => holder)}::text[]) AS granted (feed, epoch, holder)
      ),
      ${counts(tables, feeds)},
      unfinished AS MATERIALIZED (
        SELECT feed AS unfinished_of, array_agg(DISTINCT kind) AS kinds FROM ${tables.passes}
        WHERE feed = ANY (${feeds}::text[]) AND finished_at IS NULL GROUP BY feed
      ),
      locked AS MATERIALIZED (
        SELECT name FROM ${tables.feeds} AS feed JOIN granted ON ${IS_GRANTED}
        -- Counts before it locks the rows, since commits wait for these locks.
        WHERE (SELECT count(*) FROM pending) + (SELECT count(*) FROM quarantined) + (SELECT count(*) FROM unfinished) >= 0
        FOR NO KEY UPDATE OF feed ${waits ? sql`` : sql`SKIP LOCKED`}
      ),
      extended AS (
        UPDATE ${tables.feeds} AS feed SET lease_expires_at = clock_timestamp() + ${ttlMs} * interval '1 millisecond'
        FROM locked WHERE feed.name = locked.name
        RETURNING feed.*
      ),
      held AS (
        SELECT * FROM extended
        ${waits ? sql`` : sql`UNION ALL SELECT feed.* FROM ${tables.feeds} AS feed JOIN granted ON ${IS_GRANTED} WHERE name NOT IN (SELECT name FROM locked)`}
      )
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

/** For rows `feed` and `granted`: like `isHeld`. */
const IS_GRANTED = sql`feed.name = granted.feed AND feed.lease_epoch = granted.epoch
          AND COALESCE(feed.lease_holder, '') = granted.holder`;

/** For a row `feed` with its counts. */
function figures(tables: Tables): RawBuilder<unknown> {
  return sql`data_complete_as_of AS "dataCompleteAsOf",
          extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS "lagMs",
          last_poll_at AS "lastPollAt", last_commit_at AS "lastCommitAt", stuck_since AS "stuckSince",
          end_reached_at IS NOT NULL AS "endReached", ${historyIsComplete(tables)} AS "backfillComplete",
          ${LEADER} AS "leaseHolder", CASE WHEN last_commit_at IS NOT NULL THEN base_url END AS "baseUrl",
          COALESCE(pending_results, 0) AS "pendingResults",
          COALESCE(quarantined_entries, 0) AS "quarantinedEntries"`;
}

/** Counts by feed. Takes 0.6 s for a million pending results. */
function counts(tables: Tables, feeds: readonly string[]): RawBuilder<unknown> {
  return sql`pending AS MATERIALIZED (
        SELECT feed AS pending_of, count(*)::int AS pending_results FROM ${tables.runs}
        WHERE feed = ANY (${feeds}::text[]) AND result_state = 'pending' AND ${IS_RETRIED} GROUP BY feed
      ),
      quarantined AS MATERIALIZED (
        SELECT feed AS quarantined_of, count(*)::int AS quarantined_entries FROM ${tables.quarantine}
        WHERE feed = ANY (${feeds}::text[]) AND state = 'open' GROUP BY feed
      )`;
}

const JOINED_COUNTS = sql`LEFT JOIN pending ON pending_of = name LEFT JOIN quarantined ON quarantined_of = name`;
