import { type RawBuilder, sql } from 'kysely';
import { RECENT_PASS_OVERLAP_MS } from '../../core/recent-pass.js';
import type { PassCommit } from '../../sync/ports/index.js';
import { timestamp } from '../connection/store-connection.js';
import { paceColumns } from '../passes/passes.js';
import { isHeld } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, type CommitSettings, freshnessColumns, isEnd } from './commit-row.js';
import { storedEntries } from './entries.js';

/**
 * Commits a page of a pass with the pass's new position and, at its end, what it proves about the feed.
 *
 * A feed that is still read by `since` may leave out runs of any delivery time. So when its history ends (`is_by_time`), the feed
 * continues where the history ended, its freshness is unknown until then, and a page of it that was requested before is fenced. A
 * backfill, which ends before the feed does, then leaves `complete_from` as it is.
 *
 * The feed may have got its cursor after this page was requested (`has_gap`), perhaps because a failover had lost the cursor before. A
 * run that was delivered in between and left out by `since` is on neither side. So a history does not end with this page, and a
 * backfill leaves `complete_from` as it is. For the same reason it does so if its range ends before the delivery up to which the feed
 * was read by `since`.
 */
export function passPage(tables: Tables, settings: CommitSettings, page: PassCommit): RawBuilder<CommitRow> {
  const { lease, id, begunAt, from, to, until, end, feedOrigin, deliveredUpTo, entries, pace, cachedAt } = page;
  // Unless the time of the database is known, the page counts as too old.
  const cachedMs = cachedAt === null ? null : (settings.databaseClock.reachedAt(cachedAt) ?? 0);
  const cached = sql`to_timestamp(${cachedMs}::double precision / 1000)`;
  return sql<CommitRow>`
-- Locks the feed and the pass: if two processes run the same pass (a leader and a command), the second writes nothing.
WITH locked AS MATERIALIZED (
  SELECT feed.name, feed.data_complete_as_of, feed.cursor AS feed_cursor,
    feed.cursor IS NOT NULL AND feed.cursor_origin IS DISTINCT FROM ${feedOrigin}::uuid AS has_gap,
    pass.kind, pass.cursor, pass.until, pass.finished_at
  FROM ${tables.feeds} AS feed JOIN ${tables.passes} AS pass ON pass.feed = feed.name
  WHERE ${isHeld(lease)} AND pass.id = ${id}::bigint AND pass.begun_at = ${timestamp(begunAt)}
  FOR NO KEY UPDATE
),

held AS (
  SELECT name, data_complete_as_of, kind AS stored_by, kind = 'history' AND feed_cursor IS NULL AS is_by_time, has_gap
  FROM locked
  WHERE finished_at IS NULL AND cursor IS NOT DISTINCT FROM ${from}::text AND until = ${timestamp(until)}
    AND (${end === 'no'} OR kind <> 'history' OR NOT has_gap)
),

${storedEntries(tables, settings, lease.feed, page)},

moved AS (
  UPDATE ${tables.passes} AS pass SET
    cursor = ${to}::text,
    delivered_up_to = GREATEST(pass.delivered_up_to, ${timestamp(deliveredUpTo)}),
    entries = pass.entries + ${entries},
    stored = pass.stored + counts.inserted + counts.updated,
    complete_as_of = CASE WHEN pass.complete_as_of > ${cached} THEN
        CASE WHEN ${cached} >= pass.begun_at - ${RECENT_PASS_OVERLAP_MS} * interval '1 millisecond' THEN ${cached} ELSE '-infinity' END
      ELSE pass.complete_as_of END,
    last_commit_at = clock_timestamp(),
    ${paceColumns(pace)},
    finished_at = CASE WHEN ${isEnd(sql`${end}::text`)} THEN clock_timestamp() END
  FROM held CROSS JOIN counts
  WHERE pass.id = ${id}::bigint
  RETURNING pass.*, held.is_by_time, held.has_gap,
    CASE WHEN pass.finished_at IS NULL OR NOT held.is_by_time THEN held.data_complete_as_of END AS data_complete_as_of
),

-- At the end of the pass: what it proves about the feed.
claimed AS (
  UPDATE ${tables.feeds} AS feed SET
    reconciled_as_of = (SELECT max(time) FROM (VALUES (feed.reconciled_as_of), (moved.complete_as_of)) AS known (time)
      WHERE time > '-infinity' AND time <= clock_timestamp()), -- later: the clock was set back
    start_since = CASE WHEN moved.kind = 'history' THEN moved.since ELSE feed.start_since END,
    data_complete_as_of = moved.data_complete_as_of,
    cursor = CASE WHEN moved.is_by_time AND feed.resume_since IS NULL THEN moved.cursor ELSE feed.cursor END,
    lease_epoch = feed.lease_epoch + moved.is_by_time::int, -- fences pages of the feed that were read by time
    complete_from = CASE
      WHEN moved.kind = 'recent' OR moved.begun_at <= feed.filters_widened_at OR moved.complete_as_of = '-infinity'
        OR LEAST(moved.complete_as_of, ${cached}) < feed.filters_widened_at THEN feed.complete_from
      WHEN moved.kind = 'backfill' AND feed.start_since IS NOT NULL
        AND (feed.cursor IS NULL OR moved.has_gap OR moved.until < feed.read_by_time_until) THEN feed.complete_from
      -- A backfill must overlap with what is complete, to allow for differing clocks.
      WHEN moved.kind IN ('full', 'history') OR moved.until >= feed.complete_from + interval '1 hour'
        THEN LEAST(feed.complete_from, COALESCE(moved.since, '-infinity'))
      ELSE feed.complete_from END
  FROM moved WHERE feed.name = moved.feed AND moved.finished_at IS NOT NULL
)

SELECT moved.feed AS name, counts.*, moved.finished_at IS NOT NULL AS end_claimed, moved.data_complete_as_of,
  ${freshnessColumns(sql`moved.data_complete_as_of`)} FROM moved CROSS JOIN counts`;
}
