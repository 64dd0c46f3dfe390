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

/** For a row of `feeds`: the process that holds its lease now; null: none. */
export const LEADER = sql<string | null>`CASE WHEN lease_expires_at > clock_timestamp() THEN lease_holder END`;

/**
 * Condition on a row of `feeds`: the lease is still the granted one. The holder is compared too, because a database that loses
 * commits may grant the same epoch twice.
 */
export function isHeld({ feed, epoch, holder }: LeaseGrant): RawBuilder<boolean> {
  return sql`(name = ${feed} AND lease_epoch = ${epoch} AND COALESCE(lease_holder, '') = ${holder})`;
}

/**
 * Moves the feed to its new position. No row means that another process took the lease or moved the cursor. The row stays locked
 * until the commit, so the second of two writers sees the result of the first.
 * @param now monotonic milliseconds, read right before the statement is sent
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

/** Fence for writes that do not move the cursor. Locks the row, so a new holder waits for this commit or makes it fail. */
export function fenceOnLease(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
  SELECT ${AS_OF} FROM ${tables.feeds} AS feed WHERE ${isHeld(lease)} FOR NO KEY UPDATE`;
}

/**
 * Returns the assignments of the freshness columns. At the end of the feed, the data is complete up to the time the poll was sent;
 * before the end, up to the delivery that the page proves. Both instants must not be dated later than they were by the database's
 * clock, however long the statement takes to arrive. So they are dated by an earlier answer of the database (database-clock.ts),
 * the first of which came with the lease. If the clock was set back since, or belongs to another server after a failover, the age
 * of the instant when the statement is sent is the limit.
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
