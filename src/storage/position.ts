import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { EarlierPositions, LeaseGrant, MoveReason, PageCommit, Position, StoredResult } from '../sync/ports.js';
import { DATABASE_MS, type DatabaseClock } from './database-clock.js';
import type { Tables } from './schema.js';

/** A position is noted in the history this often at most, and this many are kept: a day, on a busy feed. */
const CHECKPOINT_EVERY = sql.lit('5 minutes');
const POSITIONS_KEPT = sql.lit(300);
/** So many are tried at most when a cursor is rejected. */
const CURSORS_OFFERED = sql.lit(20);

/** Where the feed stands; read again whenever the lease was taken or an outcome is unknown. */
export async function readPosition(
  db: Kysely<unknown>,
  tables: Tables,
  databaseClock: DatabaseClock,
  feed: string,
): Promise<Position> {
  const { rows } = await sql<{ cursor: string | null; since: Date | null; database_ms: number }>`
    SELECT cursor, COALESCE(resume_since, start_since) AS since, ${DATABASE_MS}
    FROM ${tables.feeds} WHERE name = ${feed}`.execute(db);
  const row = databaseClock.note(rows[0]);
  return { cursor: row?.cursor ?? null, since: row?.since ?? null };
}

/**
 * What the feed may go back to when its cursor is rejected: no cursor that was rejected before, and none that a rewind
 * left behind. Going there would skip what the rewind was to read again.
 */
export async function readEarlierPositions(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
): Promise<EarlierPositions> {
  const { rows } = await sql<{ cursors: string[] | null; read_up_to: Date | null }>`
    SELECT read_up_to, (
      SELECT array_agg(earlier.cursor ORDER BY earlier.id DESC)
      FROM (SELECT cursor, max(id) AS id FROM ${tables.cursorHistory} AS noted
        WHERE noted.feed = feed.name AND cursor IS DISTINCT FROM feed.cursor AND cursor IS NOT NULL
          AND NOT EXISTS (SELECT FROM ${tables.cursorHistory} AS later WHERE later.feed = noted.feed AND (
            later.reason = 'rejected' AND later.cursor = noted.cursor
            OR later.reason = 'rewind' AND later.id >= noted.id AND NOT ${NOT_AHEAD_OF_TARGET}))
        GROUP BY cursor ORDER BY id DESC LIMIT ${CURSORS_OFFERED}) AS earlier
    ) AS cursors
    FROM ${tables.feeds} AS feed WHERE name = ${feed}`.execute(db);
  return { cursors: rows[0]?.cursors ?? [], readUpTo: rows[0]?.read_up_to ?? null };
}

/** `noted` is where the rewind `later` went to, or before it. Nothing is before the start. */
const NOT_AHEAD_OF_TARGET = sql`COALESCE(
              noted.id <= later.target_id OR noted.last_delivered_at <= later.target_since, false)`;

/** The latest runs delivered between these times. Asked only when a cursor was rejected, so it may read the whole table. */
export async function findDelivered(
  db: Kysely<unknown>,
  tables: Tables,
  from: Date,
  to: Date,
  limit: number,
): Promise<readonly Pick<StoredResult, 'scanId' | 'revision'>[]> {
  const { rows } = await sql<Pick<StoredResult, 'scanId' | 'revision'>>`
    SELECT scan_id AS "scanId", revision FROM ${tables.runs}
    WHERE delivered_at BETWEEN ${from.toISOString()}::timestamptz AND ${to.toISOString()}::timestamptz
    ORDER BY delivered_at DESC LIMIT ${limit}`.execute(db);
  return rows;
}

/** Goes on elsewhere, to read again what was read; the old cursor goes to the history. False: the lease was lost, or another has moved it. */
export async function movePosition(
  db: Kysely<unknown>,
  tables: Tables,
  lease: LeaseGrant,
  from: string | null,
  to: Position,
  reason: MoveReason,
): Promise<boolean> {
  const { rows } = await sql`
    WITH moved AS (
      UPDATE ${tables.feeds} SET cursor = ${to.cursor}::text, resume_since = ${to.since?.toISOString() ?? null}::timestamptz
      WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND cursor IS NOT DISTINCT FROM ${from}::text
      RETURNING name, read_up_to
    ),
    noted AS (
      INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
      SELECT name, ${from}::text, read_up_to, ${reason} FROM moved
      RETURNING id
    ),
    ${forgottenRows(tables, lease.feed, sql`noted`)}
    SELECT id FROM noted`.execute(db);
  return rows.length > 0;
}

/** Notes whether the feed's cursor leads nowhere, where that has changed. */
export async function noteStuck(db: Kysely<unknown>, tables: Tables, lease: LeaseGrant, stuck: boolean): Promise<void> {
  await sql`
    UPDATE ${tables.feeds} SET stuck_since = ${stuck ? sql`clock_timestamp()` : sql`NULL`}
    WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} AND (stuck_since IS NOT NULL) <> ${stuck}`.execute(db);
}

/**
 * Part of a commit, after `fence`: now and then the new position is noted, and the oldest are let go. It is noted with the
 * last delivery of its own page: the feed may have read further before it went back.
 */
export function checkpointRows(tables: Tables, { lease, from, to, freshness }: PageCommit): RawBuilder<unknown> {
  const { feed } = lease;
  const lastDeliveredAt = freshness?.lastDeliveredAt?.toISOString() ?? null;
  return sql`
checkpoint AS (
  INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
  SELECT ${feed}, ${to}::text, COALESCE(${lastDeliveredAt}::timestamptz, fence.read_up_to), 'checkpoint'
  FROM fence
  WHERE ${to}::text IS DISTINCT FROM ${from}::text AND COALESCE(
    (SELECT noted_at FROM ${tables.cursorHistory} WHERE feed = ${feed} ORDER BY id DESC LIMIT 1), '-infinity'
  ) < clock_timestamp() - interval ${CHECKPOINT_EVERY}
  RETURNING id
),
${forgottenRows(tables, feed, sql`checkpoint`)}`;
}

/** The oldest positions make room for the one in `noted`, which is not seen yet by the statement that notes it. */
function forgottenRows(tables: Tables, feed: string, noted: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
forgotten AS (
  DELETE FROM ${tables.cursorHistory}
  WHERE EXISTS (SELECT FROM ${noted}) AND feed = ${feed} AND id <= (
    SELECT id FROM ${tables.cursorHistory} WHERE feed = ${feed} ORDER BY id DESC OFFSET ${POSITIONS_KEPT} - 1 LIMIT 1
  )
)`;
}
