import { type RawBuilder, sql } from 'kysely';
import type { Freshness, LeaseGrant, PageCommit } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import type { Tables } from './schema.js';

/** Columns of every fence's row: how fresh the feed is after this statement. */
export interface FenceRow {
  data_complete_as_of: Date | null;
  lag_ms: number | null;
}
export const AS_OF = sql`data_complete_as_of, read_up_to,
    extract(epoch FROM clock_timestamp() - data_complete_as_of)::double precision * 1000 AS lag_ms`;

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
  UPDATE ${tables.feeds} SET
    cursor = ${to}::text,
    ${to === null ? sql`` : sql`resume_since = NULL,`}
    ${freshness === null ? sql`` : freshnessColumns(freshness, settings, now)}
    last_commit_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + ${settings.leaseTtlMs} * interval '1 millisecond'
  WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND cursor IS NOT DISTINCT FROM ${from}::text
  RETURNING ${AS_OF}`;
}

/** For writes that leave the cursor alone. Locks the row too: a new holder waits for this commit, or voids it. */
export function fenceOnEpoch(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
  SELECT ${AS_OF} FROM ${tables.feeds} WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} FOR NO KEY UPDATE`;
}

/**
 * At the end of the feed everything up to the sending of the poll is here; before the end, everything up to the delivery
 * that the page proves. Neither instant may be dated later than it was by the database's clock, however long the statement takes to
 * arrive: it is dated by an earlier answer (database-clock.ts), which the lease or the position always was. Its age when the
 * statement is sent is the limit if the database's clock was set back since, or is another one after a failover.
 */
function freshnessColumns(freshness: Freshness, { databaseClock }: CommitSettings, now: number): RawBuilder<unknown> {
  const dated = (instant: number) => sql`LEAST(
      to_timestamp(${databaseClock.reachedAt(instant)}::double precision / 1000),
      transaction_timestamp() - ${Math.max(0, now - instant)} * interval '1 millisecond')`;
  const polled = dated(freshness.polledAt);
  const delivered = freshness.lastDelivered === null ? sql`NULL::timestamptz` : dated(freshness.lastDelivered);
  const complete = freshness.atEnd ? polled : delivered;
  const lastDeliveredAt = freshness.lastDeliveredAt?.toISOString() ?? null;
  return sql`
    data_complete_as_of = GREATEST(data_complete_as_of, ${complete}),
    end_reached_at = ${freshness.atEnd ? sql`COALESCE(end_reached_at, clock_timestamp())` : sql`end_reached_at`},
    last_delivered_at = GREATEST(last_delivered_at, ${lastDeliveredAt}::timestamptz),
    read_up_to = GREATEST(read_up_to, ${lastDeliveredAt}::timestamptz),
    last_poll_at = ${polled},`;
}
