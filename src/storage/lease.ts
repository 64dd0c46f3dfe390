import { type Kysely, sql } from 'kysely';
import type { FeedFilters, FeedIdentity, LeaseGrant, Trouble } from '../sync/ports.js';
import { DATABASE_MS, type DatabaseClock } from './database-clock.js';
import { historyToRead } from './passes.js';
import type { Tables } from './schema.js';

/** A first start at `now` or `live` reaches this far back, so that runs delivered while it starts are not missed. */
const NOW_REACHES_BACK = sql.lit('1 hour');

/** The stored cursor belongs to another service. Held until a person says what is meant. */
export class AnotherService extends Error implements Trouble {
  override readonly name = 'AnotherService';
  readonly kind = 'another_service';
  readonly remedy = 'hold';
  constructor({ name, baseUrl }: FeedIdentity, stored: string) {
    super(
      `the feed ${name} is stored as one of ${stored}, and SCANFEED_BASE_URL is ${baseUrl}: if the service has moved, run \`scanfeed adopt\`; if this is another application, give it a SCANFEED_FEED or SCANFEED_DATABASE_SCHEMA of its own`,
    );
  }
}

/**
 * Takes the feed if it is free, silent for too long (by the database's clock), already ours or held by `replaced`; creates
 * it at the very first start, with its starting point and what is to be read behind it. Null while another process holds it. Each taking raises the epoch.
 *
 * Filters that include more than before leave runs behind the cursor: the data is complete from here on only, until a
 * full pass has read them.
 * @throws AnotherService
 */
export async function acquireLease(
  db: Kysely<unknown>,
  tables: Tables,
  databaseClock: DatabaseClock,
  feed: FeedIdentity,
  { holder, replaced }: { readonly holder: string; readonly replaced: string | null },
  ttlMs: number,
): Promise<LeaseGrant | null> {
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
      widened_at = CASE WHEN ${LEAVES_NOTHING_BEHIND} THEN feed.widened_at ELSE clock_timestamp() END,
      complete_from = CASE WHEN ${LEAVES_NOTHING_BEHIND} THEN feed.complete_from
        ELSE GREATEST(feed.complete_from, clock_timestamp()) END, -- the cursor may be ahead of what the feed is complete to
      keep_history = excluded.keep_history,
      lease_holder = excluded.lease_holder,
      lease_epoch = feed.lease_epoch + 1,
      lease_expires_at = excluded.lease_expires_at,
      paced_at = NULL
    WHERE (feed.base_url = excluded.base_url OR feed.last_commit_at IS NULL) AND (
      feed.lease_holder IS NULL OR feed.lease_holder IN (excluded.lease_holder, ${replaced})
      OR feed.lease_expires_at < clock_timestamp())
    RETURNING *
    )${historyToRead(tables, feed)}
    SELECT lease_epoch AS epoch, NULLIF(before.filters, taken.filters) AS before, ${DATABASE_MS}
    FROM taken LEFT JOIN before ON true`.execute(db);
  const taken = databaseClock.note(rows[0]);
  if (taken === undefined) return refuseAnotherService(db, tables, feed);
  return { feed: feed.name, holder, epoch: Number(taken.epoch), filtersBefore: taken.before ?? null };
}

/** Whether every run that the new filters include was included before, or nothing has been read yet. */
const LEAVES_NOTHING_BEHIND = sql`((feed.filters->'status') @> (excluded.filters->'status')
        AND feed.filters->>'environment' IN ('all', excluded.filters->>'environment')
        AND (feed.filters->'documentType') IN ('null', excluded.filters->'documentType')
        OR feed.cursor IS NULL AND feed.resume_since IS NULL AND feed.data_complete_as_of IS NULL)`;

async function refuseAnotherService(db: Kysely<unknown>, tables: Tables, feed: FeedIdentity): Promise<null> {
  const { rows } = await sql<{ base_url: string }>`
    SELECT base_url FROM ${tables.feeds} WHERE name = ${feed.name} AND last_commit_at IS NOT NULL`.execute(db);
  const stored = rows[0]?.base_url;
  if (stored !== undefined && stored !== feed.baseUrl) throw new AnotherService(feed, stored);
  return null;
}

function startOf({ start }: FeedIdentity) {
  if (start === 'beginning') return sql`NULL::timestamptz`;
  if (start === 'now' || start === 'live') return sql`clock_timestamp() - interval ${NOW_REACHES_BACK}`;
  return sql`${start.toISOString()}::timestamptz`;
}

/**
 * Extends the lease; false when another process has it, or the epoch was raised. The holder is compared too: a database that
 * loses commits grants the same epoch twice.
 */
export async function renewLease(
  db: Kysely<unknown>,
  tables: Tables,
  databaseClock: DatabaseClock,
  lease: LeaseGrant,
  ttlMs: number,
): Promise<boolean> {
  const { rows } = await sql<{ database_ms: number }>`
    UPDATE ${tables.feeds} SET lease_expires_at = clock_timestamp() + ${ttlMs} * interval '1 millisecond'
    WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND lease_holder = ${lease.holder}
    RETURNING ${DATABASE_MS}`.execute(db);
  return databaseClock.note(rows[0]) !== undefined;
}

/** Gives the feed back. Nothing happens where the lease is lost already. */
export async function releaseLease(db: Kysely<unknown>, tables: Tables, lease: LeaseGrant): Promise<void> {
  await sql`
    UPDATE ${tables.feeds} SET lease_holder = NULL, lease_expires_at = NULL
    WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND lease_holder = ${lease.holder}`.execute(db);
}
