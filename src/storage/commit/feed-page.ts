import { type RawBuilder, sql } from 'kysely';
import type { PageCommit } from '../../sync/ports/index.js';
import { isHeld, leasesIn, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, isEnd, lag } from './commit-row.js';
import type { CommitSettings } from './commit-settings.js';
import { storedEntries } from './entries.js';
import { prunedHistory } from './position.js';

/** Minimum interval between two checkpoints in the history of cursors. Two commits that overlap may each add one. */
const CHECKPOINT_INTERVAL = sql.lit('5 minutes');

/** One page; or several without entries, each of another feed. */
export type FeedPages = readonly [PageCommit, ...PageCommit[]];

/**
 * Commits a page of the feed with its cursor and what it proves about freshness. A feed without a row in the answer is fenced:
 * another process took its lease or moved its cursor.
 *
 * `locked` waits for the commit before. The cursor is compared only afterwards, in `held`: a condition in `locked` would first be
 * applied to the row of the statement's snapshot, and would not match.
 *
 * Variants: several feeds at once wait for no other writer, which would delay all of them and could deadlock, so a feed whose row is
 * locked has no row in the answer either. At rest the cursor does not move, and half of the statement, and of the time to plan it,
 * is not needed.
 * @param now monotonic milliseconds, read right before the statement is sent
 */
export function feedPage(tables: Tables, settings: CommitSettings, pages: FeedPages, now: number) {
  const [page] = pages;
  return sql<CommitRow>`
WITH sent AS MATERIALIZED (
  ${sentPages(pages, settings, now)}
),
locked AS MATERIALIZED (
  SELECT feed.name, feed.cursor, feed.delivered_up_to
  FROM ${tables.feeds} AS feed JOIN sent ON ${isHeld(leasesIn('sent'))}
  FOR NO KEY UPDATE OF feed ${pages.length > 1 ? sql`SKIP LOCKED` : sql``}
),
held AS (
  SELECT sent.*, locked.name, locked.delivered_up_to, 'feed' AS stored_by
  FROM sent JOIN locked ON locked.name = sent.feed AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor
),
${storedEntries(tables, settings, page.lease.feed, page)},
${pages.some(({ from, to }) => from !== to) ? checkpoint(tables) : sql``}
moved AS (
  UPDATE ${tables.feeds} AS feed SET
    cursor = held.to_cursor,
    resume_since = CASE WHEN held.to_cursor IS NULL THEN feed.resume_since END,
    end_reached_at = CASE WHEN ${AT_END} THEN COALESCE(feed.end_reached_at, clock_timestamp()) ELSE feed.end_reached_at END,
    last_delivered_at = GREATEST(feed.last_delivered_at, held.last_delivered_at),
    delivered_up_to = GREATEST(feed.delivered_up_to, held.last_delivered_at),
    last_poll_at = held.polled_at,
    last_commit_at = clock_timestamp(),
    data_complete_as_of = GREATEST(${COMPLETE_AS_OF}, ${STILL_COMPLETE_AS_OF})
  FROM held CROSS JOIN counts
  WHERE feed.name = held.name
  RETURNING feed.name, feed.data_complete_as_of, counts.*, ${AT_END} AS end_claimed
)

SELECT moved.*, ${lag(sql`moved.data_complete_as_of`)} FROM moved`;
}

/**
 * Parts of the statement: add the new cursor to the history, and delete the oldest ones. A checkpoint has the last delivery of its
 * own page: the feed may have read further before it was rewound.
 */
function checkpoint(tables: Tables): RawBuilder<unknown> {
  return sql`
checkpoint AS (
  INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
  SELECT name, to_cursor, COALESCE(last_delivered_at, delivered_up_to), 'checkpoint'
  FROM held
  WHERE to_cursor IS DISTINCT FROM from_cursor AND COALESCE(
    (SELECT noted_at FROM ${tables.cursorHistory} AS noted WHERE noted.feed = held.name ORDER BY id DESC LIMIT 1), '-infinity'
  ) < clock_timestamp() - interval ${CHECKPOINT_INTERVAL}
  RETURNING feed, id
),
pruned AS (
  ${prunedHistory(tables, sql`checkpoint`)}
),`;
}

/** For rows `held` and `counts`: the page is the end of the feed. */
const AT_END = isEnd(sql`held.end_claim`);

/**
 * For rows `held`, `counts` and `feed`: the time up to which the page proves the data to be complete. A page that was requested by the time of
 * a rewind proves nothing: it may leave out runs of any delivery time.
 */
const COMPLETE_AS_OF = sql`CASE WHEN held.from_cursor IS NOT NULL OR feed.resume_since IS NULL
      THEN CASE WHEN ${AT_END} THEN held.polled_at ELSE held.delivered_at END END`;

/**
 * Returns rows of positions and what their pages prove about freshness; a page that proves no delivery leaves those columns null. At
 * the end of the feed, the data is complete up to the time the poll was sent; before it, up to the delivery that the page proves.
 * Neither time may be later than it really was by the database's clock, however long the statement takes to arrive. So both are
 * derived from an earlier answer of the database (database-clock.ts). The same answer predicts the time at which the statement
 * arrives. The difference from the real time, in either direction, is subtracted: it is the time that the statement was on the way,
 * or by how much the clock was set back. Without an earlier answer, nothing is claimed.
 */
function sentPages(pages: FeedPages, { databaseClock }: CommitSettings, now: number): RawBuilder<unknown> {
  const reachedAt = (instant: number | null) => (instant === null ? null : databaseClock.reachedAt(instant));
  const columns: readonly Column[] = [
    ['feed', 'text', ({ lease }) => lease.feed],
    ['epoch', 'bigint', ({ lease }) => lease.epoch],
    ['holder', 'text', ({ lease }) => lease.holder],
    ['from_cursor', 'text', ({ from }) => from],
    ['to_cursor', 'text', ({ to }) => to],
    ['end_claim', 'text', ({ freshness }) => freshness.end],
    ['last_delivered_at', 'timestamptz', ({ freshness }) => freshness.lastDeliveredAt?.toISOString() ?? null],
    ['polled_reached', 'double precision', ({ freshness }) => reachedAt(freshness.polledAt)],
    ['delivered_reached', 'double precision', ({ freshness }) => reachedAt(freshness.lastDelivered)],
    ['sent_reached', 'double precision', () => reachedAt(now)],
  ];
  const dated = (instant: string) => sql`to_timestamp((${sql.id(`${instant}_reached`)}
      - abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_reached)) / 1000)`;
  return sql`SELECT feed, epoch, holder, from_cursor, to_cursor, end_claim, last_delivered_at,
    ${dated('polled')} AS polled_at, ${dated('delivered')} AS delivered_at
  FROM ${pageRows(columns, pages)} AS page (${sql.join(columns.map(([name]) => sql.id(name)))})`;
}

type Column = readonly [name: string, type: string, read: (page: PageCommit) => unknown];

/** A single row has no arrays: PostgreSQL expects ten rows of an array and would plan the statement each time. */
function pageRows(columns: readonly Column[], pages: FeedPages): RawBuilder<unknown> {
  const [page, ...others] = pages;
  if (others.length === 0) {
    return sql`(VALUES (${sql.join(columns.map(([, type, read]) => sql`${read(page)}::${sql.raw(type)}`))}))`;
  }
  return sql`unnest(${sql.join(columns.map(([, type, read]) => sql`${pages.map(read)}::${sql.raw(type)}[]`))})`;
}
