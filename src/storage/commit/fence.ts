import { type RawBuilder, sql } from 'kysely';
import type { FreshnessClaim, LeaseGrant, PageCommit } from '../../sync/ports/index.js';
import { timestamp } from '../connection/store-connection.js';
import type { Tables } from '../schema/schema.js';
import type { CommitSettings } from './commit-settings.js';

/** Columns of the fence, read from `feed`: how fresh the feed is after this statement. */
export interface FenceRow {
  data_complete_as_of: Date | null;
  lag_ms: number | null;
}
export const AS_OF = sql`feed.data_complete_as_of, feed.delivered_up_to,
    extract(epoch FROM clock_timestamp() - feed.data_complete_as_of)::double precision * 1000 AS lag_ms`;

/** Of a row of `feeds`: the process that holds it now; null: none does. */
export const LEADER = sql<string | null>`CASE WHEN lease_expires_at > clock_timestamp() THEN lease_holder END`;

/**
 * Whether the feed's row is still held as it was granted. The holder is compared too: a database that loses commits grants the
 * same epoch twice.
 */
export function isHeld({ feed, epoch, holder }: LeaseGrant): RawBuilder<boolean> {
  return sql`(name = ${feed} AND lease_epoch = ${epoch} AND COALESCE(lease_holder, '') = ${holder})`;
}

/**
 * Moves the feed to its new position if nobody else did: no row means that another process holds the feed or moved its
 * cursor. The row stays locked until the commit, so that of two writers the second sees what the first did.
 * @param now monotonic time, read right before the statement is sent
 */
export function fenceOnPosition(
  tables: Tables,
  commit: PageCommit,
  settings: CommitSettings,
  now: number,
): RawBuilder<unknown> {
  const { lease, from, to, freshness } = commit;
  return sql`
  UPDATE ${tables.feeds} AS feed SET
    cursor = ${to}::text,
    ${to === null ? sql`` : sql`resume_since = NULL,`}
    ${freshness === null ? sql`` : freshnessColumns(freshness, settings, now)}
    last_commit_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + ${settings.leaseTtlMs} * interval '1 millisecond'
  WHERE ${isHeld(lease)} AND cursor IS NOT DISTINCT FROM ${from}::text
  RETURNING ${AS_OF}`;
}

/** For writes that leave the cursor alone. Locks the row too: a new holder waits for this commit, or voids it. */
export function fenceOnLease(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
  SELECT ${AS_OF} FROM ${tables.feeds} AS feed WHERE ${isHeld(lease)} FOR NO KEY UPDATE`;
}

/**
 * At the end of the feed everything up to the sending of the poll is here; before the end, everything up to the delivery
 * that the page proves. Neither instant may be dated later than it was by the database's clock, however long the statement takes to
 * arrive: it is dated by an earlier answer of the database (database-clock.ts); taking the lease gave the first. Its age when the
 * statement is sent is the limit if the database's clock was set back since, or is another one after a failover.
 */
function freshnessColumns(
  freshness: FreshnessClaim,
  { databaseClock }: CommitSettings,
  now: number,
): RawBuilder<unknown> {
  const dated = (instant: number) => sql`LEAST(
      to_timestamp(${databaseClock.reachedAt(instant)}::double precision / 1000),
      transaction_timestamp() - ${Math.max(0, now - instant)} * interval '1 millisecond')`;
  const polled = dated(freshness.polledAt);
  const delivered = freshness.lastDelivered === null ? sql`NULL::timestamptz` : dated(freshness.lastDelivered);
  const complete = freshness.atEnd ? polled : delivered;
  const lastDeliveredAt = timestamp(freshness.lastDeliveredAt);
  return sql`
    data_complete_as_of = GREATEST(data_complete_as_of, ${complete}),
    end_reached_at = ${freshness.atEnd ? sql`COALESCE(end_reached_at, clock_timestamp())` : sql`end_reached_at`},
    last_delivered_at = GREATEST(last_delivered_at, ${lastDeliveredAt}),
    delivered_up_to = GREATEST(delivered_up_to, ${lastDeliveredAt}),
    last_poll_at = ${polled},`;
}
