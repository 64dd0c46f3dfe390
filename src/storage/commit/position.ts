import { type RawBuilder, sql } from 'kysely';
import type { FeedStore, PageCommit } from '../../sync/ports/index.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import type { Tables } from '../schema/schema.js';
import { isHeld } from './fence.js';

/** Minimum interval between two checkpoints in the history of cursors. */
const CHECKPOINT_INTERVAL = sql.lit('5 minutes');
/** Number of positions kept per feed: a day on a busy feed. */
const POSITIONS_KEPT = sql.lit(300);
/** Maximum number of earlier cursors to try after a rejection. */
const CURSORS_OFFERED = sql.lit(20);

/** Creates the access to the current position of a feed and to its earlier ones. */
export function createPositions(
  { db, tables }: StoreConnection,
  databaseClock: DatabaseClock,
): Pick<FeedStore, 'readPosition' | 'readEarlierPositions' | 'findDelivered' | 'movePosition' | 'storeStuck'> {
  return {
    async readPosition(feed) {
      const row = await db
        .selectFrom('feeds')
        .select(({ fn }) => ['cursor', fn.coalesce('resume_since', 'start_since').as('since'), DATABASE_MS])
        .where('name', '=', feed)
        .executeTakeFirst();
      const { cursor = null, since = null } = databaseClock.note(row) ?? {};
      return { cursor, since };
    },

    /** Omits rejected cursors, and those ahead of a rewind's target: they would skip the entries that the rewind reads again. */
    async readEarlierPositions(feed) {
      const { rows } = await sql<{ cursors: string[] | null; delivered_up_to: Date | null }>`
        SELECT delivered_up_to, (
          SELECT array_agg(earlier.cursor ORDER BY earlier.id DESC)
          FROM (SELECT cursor, max(id) AS id FROM ${tables.cursorHistory} AS noted
            WHERE noted.feed = feed.name AND cursor IS DISTINCT FROM feed.cursor AND cursor IS NOT NULL
              AND NOT EXISTS (SELECT FROM ${tables.cursorHistory} AS later WHERE later.feed = noted.feed AND (
                later.reason = 'rejected' AND later.cursor = noted.cursor
                OR later.reason = 'rewind' AND later.id >= noted.id AND ${AHEAD_OF_TARGET}))
            GROUP BY cursor ORDER BY id DESC LIMIT ${CURSORS_OFFERED}) AS earlier
        ) AS cursors
        FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
      return { cursors: rows[0]?.cursors ?? [], deliveredUpTo: rows[0]?.delivered_up_to ?? null };
    },

    /** Called only after a cursor was rejected, so it may read the whole table. */
    findDelivered: (from, to, limit) =>
      db
        .selectFrom('runs')
        .select(['scan_id as scanId', 'revision'])
        .where(({ between }) => between('delivered_at', timestamp(from), timestamp(to)))
        .orderBy('delivered_at', 'desc')
        .limit(limit)
        .execute(),

    async movePosition(lease, from, to, reason) {
      const { rows } = await sql`
        WITH moved AS (
          UPDATE ${tables.feeds} SET cursor = ${to.cursor}::text, resume_since = ${timestamp(to.since)}
          WHERE ${isHeld(lease)} AND cursor IS NOT DISTINCT FROM ${from}::text
          RETURNING name, delivered_up_to
        ),
        noted AS (
          INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
          SELECT name, ${from}::text, delivered_up_to, ${reason} FROM moved
          RETURNING id
        ),
        ${prunedRows(tables, lease.feed, sql`noted`)}
        SELECT id FROM noted`.execute(db);
      return rows.length > 0;
    },

    async storeStuck(lease, stuck) {
      await db
        .updateTable('feeds')
        .set({ stuck_since: stuck ? sql`clock_timestamp()` : null })
        .where(isHeld(lease))
        .where('stuck_since', stuck ? 'is' : 'is not', null)
        .execute();
    },
  };
}

/** Condition: the position `noted` is ahead of the target of the rewind `later`. Everything is ahead of the start. */
const AHEAD_OF_TARGET = sql`NOT COALESCE(
              noted.id <= later.target_id OR noted.last_delivered_at <= later.target_since, false)`;

/**
 * Part of a commit, after `fence`: adds the new position to the history every {@link CHECKPOINT_INTERVAL}, and deletes the oldest
 * ones. The checkpoint has the last delivery of its own page: the feed may have read further before it was rewound.
 */
export function checkpointRows(tables: Tables, { lease, from, to, freshness }: PageCommit): RawBuilder<unknown> {
  const { feed } = lease;
  const lastDeliveredAt = timestamp(freshness?.lastDeliveredAt ?? null);
  return sql`
checkpoint AS (
  INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
  SELECT ${feed}, ${to}::text, COALESCE(${lastDeliveredAt}, fence.delivered_up_to), 'checkpoint'
  FROM fence
  WHERE ${to}::text IS DISTINCT FROM ${from}::text AND COALESCE(
    (SELECT noted_at FROM ${tables.cursorHistory} WHERE feed = ${feed} ORDER BY id DESC LIMIT 1), '-infinity'
  ) < clock_timestamp() - interval ${CHECKPOINT_INTERVAL}
  RETURNING id
),
${prunedRows(tables, feed, sql`checkpoint`)}`;
}

/** Deletes the oldest positions. The new one, in `noted`, is not visible to the statement that inserts it. */
function prunedRows(tables: Tables, feed: string, noted: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
pruned AS (
  DELETE FROM ${tables.cursorHistory}
  WHERE EXISTS (SELECT FROM ${noted}) AND feed = ${feed} AND id <= (
    SELECT id FROM ${tables.cursorHistory} WHERE feed = ${feed} ORDER BY id DESC OFFSET ${POSITIONS_KEPT} - 1 LIMIT 1
  )
)`;
}
