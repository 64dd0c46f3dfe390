import { type RawBuilder, sql } from 'kysely';
import type { Failure } from '../../core/errors.js';
import { type FeedFilters, UNFILTERED } from '../../core/feed-filters.js';
import type { FeedIdentity, LeaseGrant, LeaseStore } from '../../sync/ports/index.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { beginHistoryPass } from '../passes/passes.js';
import { IS_LED, isHeld, renewLease } from '../tables/lease-columns.js';

/** How far before the first start `now` and `live` begin, so that runs delivered during the start are not missed. */
const START_OVERLAP = sql.lit('1 hour');

/** The stored cursor belongs to another service. Held until an operator resolves it. */
export class AnotherService extends Error implements Failure {
  override readonly name = 'AnotherService';
  readonly kind = 'another_service';
  readonly action = 'hold';
  constructor({ name, baseUrl }: FeedIdentity, stored: string) {
    super(
      `the feed ${name} belongs to ${stored}, but the configured base URL is ${baseUrl}: if the service has moved, run \`scanfeed adopt --feed ${name}\`; if this is another application, give it a feed name or a database schema of its own`,
    );
  }
}

interface AcquiredRow {
  readonly is_locked: boolean;
  /** Null: the lease was not taken. */
  readonly epoch: string | null;
  /** Null: the filters are the same. */
  readonly before: FeedFilters | null;
  readonly database_ms: number;
}

/** Creates the access to the leases of feeds. The holder of its lease may write to a feed. */
export function createLeases({ db, tables }: StoreConnection, databaseClock: DatabaseClock): LeaseStore {
  const requireSameService = async (feed: FeedIdentity) => {
    const stored = await db
      .selectFrom('feeds')
      .select('base_url')
      .where('name', '=', feed.name)
      .where('last_commit_at', 'is not', null)
      .executeTakeFirst();
    if (stored !== undefined && stored.base_url !== feed.baseUrl) throw new AnotherService(feed, stored.base_url);
  };
  /**
   * Takes the lease if it is free, expired by the clock of the database, already ours, or held by `replaced`. Creates the feed at
   * its very first start, with its starting point and its history pass. Raises the epoch each time. If the filters include more
   * than before, the cursor is already past some of these runs, so the data is complete only from now on, until a full pass has
   * read them. Returns `locked` if the row of the feed is locked and the statement does not wait for it.
   * @throws AnotherService
   */
  const acquire = async (
    feed: FeedIdentity,
    holder: string,
    ttlMs: number,
    replaced: string | null,
    waits: boolean,
  ): Promise<LeaseGrant | 'locked' | null> => {
    const { rows } = await sql<AcquiredRow>`
        WITH before AS (
          SELECT filters FROM ${tables.feeds} WHERE name = ${feed.name}
        ),
        unlocked AS MATERIALIZED (
          SELECT FROM ${tables.feeds} WHERE name = ${feed.name} FOR NO KEY UPDATE ${waits ? sql`` : sql`SKIP LOCKED`}
        ),
        state AS MATERIALIZED (
          SELECT EXISTS (SELECT FROM before) AND NOT EXISTS (SELECT FROM unlocked) AS is_locked
        ),
        taken AS (
          -- At the very first start: creates the feed.
          INSERT INTO ${tables.feeds} AS feed (name, base_url, filters, keep_history, start_since, complete_from,
            lease_holder, lease_epoch, lease_renewed_at, lease_expires_at)
          SELECT ${feed.name}, ${feed.baseUrl}, ${JSON.stringify(feed.filters)}::jsonb, ${feed.keepHistory}, since,
            COALESCE(since, '-infinity'), ${holder}, 1, clock_timestamp(),
            clock_timestamp() + ${ttlMs} * interval '1 millisecond'
          FROM state, (SELECT ${startOf(feed)} AS since) AS start WHERE NOT is_locked
          -- Later: takes the lease, and applies the settings.
          ON CONFLICT (name) DO UPDATE SET
            base_url = excluded.base_url, -- differs only if nothing was read from the old one
            filters = excluded.filters,
            filters_since = CASE WHEN feed.filters <> excluded.filters THEN clock_timestamp() ELSE feed.filters_since END,
            filters_widened_at = CASE WHEN ${ARE_WIDENED} THEN clock_timestamp() ELSE feed.filters_widened_at END,
            complete_from = CASE WHEN ${ARE_WIDENED}
              -- The cursor may be ahead of data_complete_as_of, and the service's clock ahead of the database's.
              THEN GREATEST(feed.complete_from, clock_timestamp(), feed.last_delivered_at)
              ELSE feed.complete_from END,
            keep_history = excluded.keep_history,
            lease_holder = excluded.lease_holder,
            lease_epoch = feed.lease_epoch + 1,
            ${renewLease(ttlMs)},
            rate_measured_at = NULL
          WHERE (feed.base_url = excluded.base_url OR feed.last_commit_at IS NULL)
            -- Free, ours, held by a dead process, or expired.
            AND (feed.lease_holder IS NULL OR feed.lease_holder IN (excluded.lease_holder, ${replaced})
              OR ${IS_LED} IS NOT TRUE)
          RETURNING *
        )
        ${feed.start === 'live' ? sql`, history AS (${beginHistoryPass(tables)})` : sql``}
        SELECT is_locked, lease_epoch AS epoch, NULLIF(before.filters, taken.filters) AS before, ${DATABASE_MS}
        FROM state LEFT JOIN taken ON true LEFT JOIN before ON true`.execute(db);
    const row = databaseClock.note(rows[0]) as AcquiredRow;
    if (row.epoch !== null) return { feed: feed.name, holder, epoch: Number(row.epoch), filtersBefore: row.before };
    await requireSameService(feed);
    return row.is_locked ? 'locked' : null;
  };
  return {
    acquireLease: async (feed, holder, ttlMs, replaced = null) => {
      const lease = await acquire(feed, holder, ttlMs, replaced, true);
      return lease === 'locked' ? null : lease; // the row was deleted while the statement waited for it
    },
    tryAcquireLease: (feed, holder, ttlMs, replaced) => acquire(feed, holder, ttlMs, replaced, false),

    async releaseLease(lease) {
      await db
        .updateTable('feeds')
        .set({ lease_holder: null, lease_renewed_at: null, lease_expires_at: null })
        .where(isHeld(lease))
        .execute();
    },
  };
}

/** Condition: something was read already, and the new filters may include runs that the old ones hid. A filter not stored hid nothing. */
const ARE_WIDENED = sql`(
              (feed.cursor IS NOT NULL OR feed.resume_since IS NOT NULL OR feed.data_complete_as_of IS NOT NULL)
              AND EXISTS (SELECT FROM jsonb_each(feed.filters) AS old (filter, setting)
                WHERE (setting = ${sql.lit(JSON.stringify(UNFILTERED))}::jsonb->filter
                  OR setting @> (excluded.filters->filter)) IS NOT TRUE))`;

function startOf({ start }: FeedIdentity): RawBuilder<Date | null> {
  if (start === 'beginning') return sql`NULL::timestamptz`;
  if (start === 'now' || start === 'live') return sql`clock_timestamp() - interval ${START_OVERLAP}`;
  return timestamp(start);
}
