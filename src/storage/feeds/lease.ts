import { type RawBuilder, sql } from 'kysely';
import type { Failure } from '../../core/errors.js';
import type { FeedFilters, FeedIdentity, FeedStore } from '../../sync/ports/index.js';
import { isHeld } from '../commit/fence.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { historyToRead } from '../passes/passes.js';

/** A first start at `now` or `live` reaches this far back, so that runs delivered while it starts are not missed. */
const NOW_REACHES_BACK = sql.lit('1 hour');

/** The stored cursor belongs to another service. Held until a person says what is meant. */
export class AnotherService extends Error implements Failure {
  override readonly name = 'AnotherService';
  readonly kind = 'another_service';
  readonly action = 'hold';
  constructor({ name, baseUrl }: FeedIdentity, stored: string) {
    super(
      `the feed ${name} is stored as one of ${stored}, and SCANFEED_BASE_URL is ${baseUrl}: if the service has moved, run \`scanfeed adopt\`; if this is another application, give it a SCANFEED_FEED or SCANFEED_DATABASE_SCHEMA of its own`,
    );
  }
}

/** The lease of a feed: which process may write to it. */
export function createLeases(
  { db, tables }: StoreConnection,
  databaseClock: DatabaseClock,
): Pick<FeedStore, 'acquireLease' | 'renewLease' | 'releaseLease'> {
  const requireSameService = async (feed: FeedIdentity) => {
    const stored = await db
      .selectFrom('feeds')
      .select('base_url')
      .where('name', '=', feed.name)
      .where('last_commit_at', 'is not', null)
      .executeTakeFirst();
    if (stored !== undefined && stored.base_url !== feed.baseUrl) throw new AnotherService(feed, stored.base_url);
  };
  return {
    /**
     * Takes the feed if it is free, silent for too long (by the database's clock), already ours or held by `replaced`;
     * creates it at the very first start, with its starting point and what is to be read behind it. Each taking raises
     * the epoch. Filters that include more than before leave runs behind the cursor: the data is complete from here on
     * only, until a full pass has read them.
     * @throws AnotherService
     */
    async acquireLease(feed, holder, ttlMs, replaced = null) {
      const { rows } = await sql<{ epoch: string; before: FeedFilters | null; database_ms: number }>`
        WITH before AS (SELECT filters FROM ${tables.feeds} WHERE name = ${feed.name}),
        taken AS (
        INSERT INTO ${tables.feeds} AS feed (name, base_url, filters, keep_history, start_since, complete_from,
          lease_holder, lease_epoch, lease_expires_at)
        SELECT ${feed.name}, ${feed.baseUrl}, ${JSON.stringify(feed.filters)}::jsonb, ${feed.keepHistory}, since,
          COALESCE(since, '-infinity'), ${holder}, 1, clock_timestamp() + ${ttlMs} * interval '1 millisecond'
        FROM (SELECT ${startOf(feed)} AS since) AS start
        ON CONFLICT (name) DO UPDATE SET
          base_url = excluded.base_url, -- another one only while nothing was read from the old
          filters = excluded.filters,
          filters_since = CASE WHEN feed.filters = excluded.filters THEN feed.filters_since ELSE clock_timestamp() END,
          filters_widened_at = CASE WHEN ${LEAVES_NOTHING_BEHIND} THEN feed.filters_widened_at ELSE clock_timestamp() END,
          complete_from = CASE WHEN ${LEAVES_NOTHING_BEHIND} THEN feed.complete_from
            ELSE GREATEST(feed.complete_from, clock_timestamp()) END, -- the cursor may be ahead of what the feed is complete to
          keep_history = excluded.keep_history,
          lease_holder = excluded.lease_holder,
          lease_epoch = feed.lease_epoch + 1,
          lease_expires_at = excluded.lease_expires_at,
          rate_measured_at = NULL
        WHERE (feed.base_url = excluded.base_url OR feed.last_commit_at IS NULL) AND (
          feed.lease_holder IS NULL OR feed.lease_holder IN (excluded.lease_holder, ${replaced})
          OR feed.lease_expires_at < clock_timestamp())
        RETURNING *
        )${historyToRead(tables, feed)}
        SELECT lease_epoch AS epoch, NULLIF(before.filters, taken.filters) AS before, ${DATABASE_MS}
        FROM taken LEFT JOIN before ON true`.execute(db);
      const taken = databaseClock.note(rows[0]);
      if (taken !== undefined) {
        return { feed: feed.name, holder, epoch: Number(taken.epoch), filtersBefore: taken.before ?? null };
      }
      await requireSameService(feed);
      return null;
    },

    async renewLease(lease, ttlMs) {
      const renewed = await db
        .updateTable('feeds')
        .set({ lease_expires_at: sql`clock_timestamp() + ${ttlMs} * interval '1 millisecond'` })
        .where(isHeld(lease))
        .returning(DATABASE_MS)
        .executeTakeFirst();
      return databaseClock.note(renewed) !== undefined;
    },

    async releaseLease(lease) {
      await db.updateTable('feeds').set({ lease_holder: null, lease_expires_at: null }).where(isHeld(lease)).execute();
    },
  };
}

/** Whether every run that the new filters include was included before, or nothing has been read yet. */
const LEAVES_NOTHING_BEHIND = sql`((feed.filters->'status') @> (excluded.filters->'status')
        AND feed.filters->>'environment' IN ('all', excluded.filters->>'environment')
        AND (feed.filters->'documentType') IN ('null', excluded.filters->'documentType')
        OR feed.cursor IS NULL AND feed.resume_since IS NULL AND feed.data_complete_as_of IS NULL)`;

function startOf({ start }: FeedIdentity): RawBuilder<Date | null> {
  if (start === 'beginning') return sql`NULL::timestamptz`;
  if (start === 'now' || start === 'live') return sql`clock_timestamp() - interval ${NOW_REACHES_BACK}`;
  return timestamp(start);
}
