import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** An earlier position of a feed. The cursor itself is not shown: its id names it. */
export interface EarlierPosition {
  /** A bigint as text. */
  readonly id: string;
  readonly notedAt: Date;
  /** `checkpoint`, `rejected`, `rewind` or `adopt`. */
  readonly reason: string;
  /** Delivery time up to which the feed was read there, service clock. */
  readonly lastDeliveredAt: Date | null;
  readonly hasCursor: boolean;
}

const POSITION = sql`id::text, noted_at AS "notedAt", reason, last_delivered_at AS "lastDeliveredAt",
      cursor IS NOT NULL AS "hasCursor"`;

/** Newest first. */
export async function listPositions(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
): Promise<readonly EarlierPosition[]> {
  const { rows } = await sql<EarlierPosition>`
    SELECT ${POSITION} FROM ${tables.cursorHistory} AS earlier WHERE feed = ${feed} ORDER BY earlier.id DESC`.execute(
    db,
  );
  return rows;
}

/** Null where the feed has no earlier position of this id. */
export async function findPosition(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  id: string,
): Promise<EarlierPosition | null> {
  const { rows } = await sql<EarlierPosition>`
    SELECT ${POSITION} FROM ${tables.cursorHistory} WHERE feed = ${feed} AND id = ${id}::bigint`.execute(db);
  return rows[0] ?? null;
}

/** Where to go back to: an earlier position by its id, a delivery time, or the feed's start. */
export type RewindTarget = { readonly positionId: string } | { readonly since: Date } | 'start';

/**
 * Moves the feed back in one statement with the epoch, so that no page on its way can be committed from where the feed was.
 * The old position goes to the history. What is stored stays, and so does what is known of its freshness. False: the
 * position is no longer in the history.
 */
export async function rewindFeed(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  to: RewindTarget,
): Promise<boolean> {
  const { rows } = await sql`
    WITH target AS MATERIALIZED (${targetRow(tables, feed, to)}),
    -- Locked before it is read: the row as it is now, not as it was when the statement began.
    old AS MATERIALIZED (
      SELECT name, cursor, resume_since, read_up_to FROM ${tables.feeds} WHERE name = ${feed} FOR UPDATE
    ),
    moved AS (
      UPDATE ${tables.feeds} AS feed SET cursor = target.cursor, resume_since = target.since,
        read_up_to = target.read_up_to, lease_epoch = feed.lease_epoch + 1
      FROM old, target WHERE feed.name = old.name
      RETURNING old.*, target.id AS target_id, target.since AS target_since
    )
    INSERT INTO ${tables.cursorHistory} (feed, cursor, since, last_delivered_at, reason, target_id, target_since)
    SELECT name, cursor, resume_since, read_up_to, 'rewind', target_id, target_since FROM moved
    RETURNING id`.execute(db);
  return rows.length > 0;
}

function targetRow(tables: Tables, feed: string, to: RewindTarget) {
  if (to === 'start') {
    return sql`
      SELECT NULL::bigint AS id, NULL::text AS cursor, NULL::timestamptz AS since, NULL::timestamptz AS read_up_to`;
  }
  if ('since' in to) {
    const since = sql`${to.since.toISOString()}::timestamptz`;
    return sql`SELECT NULL::bigint AS id, NULL::text AS cursor, ${since} AS since, ${since} AS read_up_to`;
  }
  return sql`
      SELECT id, cursor, NULL::timestamptz AS since, last_delivered_at AS read_up_to FROM ${tables.cursorHistory}
      WHERE feed = ${feed} AND id = ${to.positionId}::bigint AND cursor IS NOT NULL`;
}
