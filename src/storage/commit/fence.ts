import { type RawBuilder, sql } from 'kysely';
import type { LeaseGrant, PageCommit } from '../../sync/ports/index.js';
import type { Tables } from '../schema/schema.js';
import type { CommitSettings } from './commit-settings.js';

/** A row of the fence: the name of its feed, and how fresh the feed is after this statement. */
export interface FenceRow {
  name: string;
  data_complete_as_of: Date | null;
  lag_ms: number | null;
}

/**
 * Returns the columns of the fence for a row `feed`.
 * @param completeAsOf `data_complete_as_of` after this statement; by default that of the row
 */
export function fenceColumns(completeAsOf = sql`feed.data_complete_as_of`): RawBuilder<unknown> {
  return sql`feed.name, ${completeAsOf} AS data_complete_as_of, feed.delivered_up_to,
    extract(epoch FROM clock_timestamp() - ${completeAsOf})::double precision * 1000 AS lag_ms`;
}

/**
 * For a row `feed`: its lease is held now. A lease that was renewed in the future is not: the clock was set back, and nobody else could
 * take the lease until it has caught up.
 */
export const IS_LED = sql`(clock_timestamp() BETWEEN feed.lease_renewed_at AND feed.lease_expires_at)`;

/** For a row `feed`: the process that holds its lease now; null: none. */
export const LEADER = sql<string | null>`CASE WHEN ${IS_LED} THEN lease_holder END`;

/**
 * Assignments to a row `feed` that renew its lease. The data was complete as of a time by the clock of then: if the row has a later time
 * than the present, the clock was set back, and how fresh the data is remains unknown until the end of the feed.
 */
export function renewLease(ttlMs: number, claimed = sql`NULL::timestamptz`): RawBuilder<unknown> {
  return sql`lease_renewed_at = clock_timestamp(),
    lease_expires_at = clock_timestamp() + ${ttlMs} * interval '1 millisecond',
    data_complete_as_of = GREATEST(${claimed}, CASE
      WHEN GREATEST(feed.lease_renewed_at, feed.last_commit_at, feed.data_complete_as_of) <= clock_timestamp()
      THEN feed.data_complete_as_of END)`;
}

/**
 * Condition on a row of `feeds`: the lease is still the granted one. The holder is compared too, because a database that loses
 * commits may grant the same epoch twice.
 */
export function isHeld({ feed, epoch, holder }: GrantedLease): RawBuilder<boolean> {
  return sql`(name = ${feed} AND lease_epoch = ${epoch} AND COALESCE(lease_holder, '') = ${holder})`;
}

/** The parts that identify a lease: values, or columns of a statement. */
type GrantedLease = { readonly [part in 'feed' | 'epoch' | 'holder']: LeaseGrant[part] | RawBuilder<unknown> };

/** Returns the columns that identify leases in rows of a statement. */
export function leasesIn(rows: string): GrantedLease {
  return { feed: sql.ref(`${rows}.feed`), epoch: sql.ref(`${rows}.epoch`), holder: sql.ref(`${rows}.holder`) };
}

/**
 * Parts of a statement: `sent`, the positions of pages, each of another feed; and `fence`, which moves each feed to its new
 * position. No row of a feed in `fence` means that another process took its lease or moved its cursor.
 *
 * `locked` waits for the commit before. The cursor is compared only afterwards: a condition in the UPDATE would first be
 * applied to the row of the statement's snapshot, and would not match. A statement for several feeds waits for no other
 * writer, which would delay all of them and could deadlock: a feed whose row is locked has no row in `fence` either.
 * @param now monotonic milliseconds, read right before the statement is sent
 */
export function fenceOnPositions(
  tables: Tables,
  pages: readonly PageCommit[],
  settings: CommitSettings,
  now: number,
): RawBuilder<unknown> {
  return sql`
WITH sent AS MATERIALIZED (
  ${sentPositions(pages, settings, now)}
),
locked AS MATERIALIZED (
  SELECT feed.name, feed.cursor FROM ${tables.feeds} AS feed JOIN sent ON ${isHeld(leasesIn('sent'))}
  FOR NO KEY UPDATE OF feed ${pages.length > 1 ? sql`SKIP LOCKED` : sql``}
),
fence AS MATERIALIZED (
  UPDATE ${tables.feeds} AS feed SET
    cursor = sent.to_cursor,
    resume_since = CASE WHEN sent.to_cursor IS NULL THEN feed.resume_since END,
    end_reached_at = CASE WHEN sent.at_end THEN COALESCE(feed.end_reached_at, clock_timestamp()) ELSE feed.end_reached_at END,
    last_delivered_at = GREATEST(feed.last_delivered_at, sent.last_delivered_at),
    delivered_up_to = GREATEST(feed.delivered_up_to, sent.last_delivered_at),
    last_poll_at = sent.polled_at,
    last_commit_at = clock_timestamp(),
    ${renewLease(settings.leaseTtlMs, sql`CASE WHEN NOT ${REWOUND_TO_TIME} THEN sent.complete_as_of END`)}
  FROM sent JOIN locked ON locked.name = sent.feed AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor
  WHERE feed.name = locked.name
  RETURNING ${fenceColumns()}
)`;
}

/** For rows `sent` and `feed`: the page was requested by the time of a rewind, and may leave out runs of any delivery time. */
const REWOUND_TO_TIME = sql`(sent.from_cursor IS NULL AND feed.resume_since IS NOT NULL)`;

/** Fence for writes that do not move the cursor. Locks the row, so a new holder waits for this commit or makes it fail. */
export function fenceOnLease(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
  SELECT ${fenceColumns()} FROM ${tables.feeds} AS feed WHERE ${isHeld(lease)} FOR NO KEY UPDATE`;
}

/**
 * Returns rows of positions and what their pages prove about freshness; a page that proves no delivery leaves those columns null. At
 * the end of the feed, the data is complete up to the time the poll was sent; before it, up to the delivery that the page proves.
 * Neither time may be later than it really was by the database's clock, however long the statement takes to arrive. So both are
 * derived from an earlier answer of the database (database-clock.ts). The same answer predicts the time at which the statement
 * arrives. The difference from the real time, in either direction, is subtracted: it is the time that the statement was on the way,
 * or by how much the clock was set back. Without an earlier answer, nothing is claimed.
 */
function sentPositions(
  pages: readonly PageCommit[],
  { databaseClock }: CommitSettings,
  now: number,
): RawBuilder<unknown> {
  const reachedAt = (instant: number | null) => (instant === null ? null : databaseClock.reachedAt(instant));
  const columns: readonly Column[] = [
    ['feed', 'text', ({ lease }) => lease.feed],
    ['epoch', 'bigint', ({ lease }) => lease.epoch],
    ['holder', 'text', ({ lease }) => lease.holder],
    ['from_cursor', 'text', ({ from }) => from],
    ['to_cursor', 'text', ({ to }) => to],
    ['at_end', 'boolean', ({ freshness }) => freshness.atEnd],
    ['last_delivered_at', 'timestamptz', ({ freshness }) => freshness.lastDeliveredAt?.toISOString() ?? null],
    ['polled_reached', 'double precision', ({ freshness }) => reachedAt(freshness.polledAt)],
    ['delivered_reached', 'double precision', ({ freshness }) => reachedAt(freshness.lastDelivered)],
    ['sent_reached', 'double precision', () => reachedAt(now)],
  ];
  const dated = (instant: string) => sql`to_timestamp((${sql.id(`${instant}_reached`)}
      - abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_reached)) / 1000)`;
  return sql`SELECT feed, epoch, holder, from_cursor, to_cursor, at_end, last_delivered_at,
    ${dated('polled')} AS polled_at,
    CASE WHEN at_end THEN ${dated('polled')} ELSE ${dated('delivered')} END AS complete_as_of
  FROM ${positionRows(columns, pages)} AS page (${sql.join(columns.map(([name]) => sql.id(name)))})`;
}

type Column = readonly [name: string, type: string, read: (page: PageCommit) => unknown];

/** A single row has no arrays: PostgreSQL expects ten rows of an array and would plan the statement each time. */
function positionRows(columns: readonly Column[], pages: readonly PageCommit[]): RawBuilder<unknown> {
  const [page, ...others] = pages;
  if (page !== undefined && others.length === 0) {
    return sql`(VALUES (${sql.join(columns.map(([, type, read]) => sql`${read(page)}::${sql.raw(type)}`))}))`;
  }
  return sql`unnest(${sql.join(columns.map(([, type, read]) => sql`${pages.map(read)}::${sql.raw(type)}[]`))})`;
}
