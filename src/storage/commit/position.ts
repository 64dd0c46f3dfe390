import { type RawBuilder, sql } from 'kysely';
import type { EarlierPositions, PositionStore, StoredPosition, StoredRevision } from '../../sync/ports/index.js';
import { DATABASE_MS, type DatabaseClock } from '../connection/database-clock.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { isHeld } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';

/** Number of positions kept per feed: those of a day on a busy feed, and of at least half a day while it catches up. */
const POSITIONS_KEPT = sql.lit(300);
/** Maximum number of earlier cursors to try after a rejection. */
const CURSORS_OFFERED = sql.lit(20);

/** Creates the access to the current position of a feed and to its earlier ones. */
export function createPositions({ db, tables }: StoreConnection, databaseClock: DatabaseClock): PositionStore {
  return {
    async readPosition(feed) {
      const { rows } = await sql<StoredPosition & { readonly database_ms: number }>`
        SELECT cursor, COALESCE(resume_since, start_since) AS since, cursor_origin AS "origin", ${DATABASE_MS}
        FROM ${tables.feeds} WHERE name = ${feed}`.execute(db);
      const { cursor = null, since = null, origin = null } = databaseClock.note(rows[0]) ?? {};
      return { cursor, since, origin };
    },

    /** Omits rejected cursors, and those ahead of a rewind's target: they would skip the entries that the rewind reads again. */
    async readEarlierPositions(feed) {
      const { rows } = await sql<EarlierPositions>`
        SELECT delivered_up_to AS "deliveredUpTo", start_since AS "startSince", ARRAY(
          SELECT cursor FROM ${tables.cursorHistory} AS earlier
          WHERE earlier.feed = feed.name AND cursor IS DISTINCT FROM feed.cursor AND cursor IS NOT NULL
            AND NOT EXISTS (SELECT FROM ${tables.cursorHistory} AS later WHERE later.feed = earlier.feed AND (
              later.reason = 'rejected' AND later.cursor = earlier.cursor
              -- The position is ahead of the target of the rewind. Everything is ahead of the start.
              OR later.reason = 'rewind' AND later.id >= earlier.id AND NOT COALESCE(
                earlier.id <= later.target_id OR earlier.last_delivered_at <= later.target_since, false)))
          GROUP BY cursor ORDER BY max(id) DESC LIMIT ${CURSORS_OFFERED}
        ) AS cursors
        FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
      return rows[0] ?? { cursors: [], deliveredUpTo: null, startSince: null };
    },

    /** Called only after a cursor was rejected, so it can read the whole table. */
    async findDelivered(feed, from, to, limit) {
      const { rows } = await sql<StoredRevision>`
        SELECT scan_id AS "scanId", revision FROM ${tables.runs}
        WHERE feed = ${feed} AND delivered_at BETWEEN ${timestamp(from)} AND ${timestamp(to)}
        ORDER BY delivered_at DESC LIMIT ${limit}`.execute(db);
      return rows;
    },

    async movePosition(lease, from, to) {
      const { rows } = await sql`
        WITH moved AS (
          UPDATE ${tables.feeds} SET cursor = ${to.cursor}::text, resume_since = ${timestamp(to.since)}
          WHERE ${isHeld(lease)} AND cursor IS NOT DISTINCT FROM ${from}::text
          RETURNING name, delivered_up_to
        ),
        rejected AS (
          INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
          SELECT name, ${from}::text, delivered_up_to, 'rejected' FROM moved
          RETURNING feed, id
        ),
        pruned AS (${prunedHistory(tables, sql`rejected`)})
        SELECT id FROM rejected`.execute(db);
      return rows.length > 0;
    },

    async storeStuck(lease, stuck) {
      await sql`
        UPDATE ${tables.feeds} SET stuck_since = CASE WHEN ${stuck} THEN clock_timestamp() END
        WHERE ${isHeld(lease)} AND (stuck_since IS NULL) = ${stuck}`.execute(db);
    },
  };
}

/** Deletes the oldest positions of the feeds in `added`, which has the new ones: the statement that inserts them does not see them. */
export function prunedHistory(tables: Tables, added: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`DELETE FROM ${tables.cursorHistory} AS earlier USING ${added} AS added
  WHERE earlier.feed = added.feed AND earlier.id <= (
    SELECT id FROM ${tables.cursorHistory} AS kept WHERE kept.feed = added.feed
    ORDER BY id DESC OFFSET ${POSITIONS_KEPT} - 1 LIMIT 1
  )`;
}
