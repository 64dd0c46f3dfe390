import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { PassKind } from '../sync/ports.js';
import { completedUntil, hasCaughtUpSinceWidening, historyIsUnfinished, prunePasses } from './passes.js';
import type { Tables } from './schema.js';

/** A pass that a person requested, or that is shown to one. */
export interface RequestedPass {
  /** A bigint as text. */
  readonly id: string;
  readonly kind: PassKind;
  /** Delivery time, service clock; null: the beginning of the history. */
  readonly since: Date | null;
  readonly until: Date;
  readonly begunAt: Date;
  readonly deliveredUpTo: Date | null;
  readonly entries: number;
  /** Runs inserted or updated. */
  readonly stored: number;
  readonly entriesPerSecond: number | null;
  readonly secondsLeft: number | null;
  /** Milliseconds since its last page, by the database's clock; null: it has none yet. */
  readonly idleMs: number | null;
  readonly finishedAt: Date | null;
  readonly cancelled: boolean;
}

/** `joined`: it was under way already. */
export type PassRequest = RequestedPass & { readonly joined: boolean };

const COLUMNS = sql`id::text, kind, since, until, begun_at AS "begunAt", delivered_up_to AS "deliveredUpTo",
      entries::double precision, stored::double precision, entries_per_second AS "entriesPerSecond",
      seconds_left AS "secondsLeft",
      extract(epoch FROM clock_timestamp() - last_commit_at)::double precision * 1000 AS "idleMs",
      finished_at AS "finishedAt", cancelled`;

/** The range of a requested pass, delivery times of the service's clock. */
export interface PassRange {
  /** Null: from the beginning of the history. */
  readonly since: Date | null;
  /** Null: up to now. */
  readonly until: Date | null;
}

/**
 * Requests a backfill, up to the later of the database's clock and the last delivery at most. An unfinished one that begins
 * no later and reaches the beginning of this one is joined: it continues, and its end moves out. So the same request made
 * twice is one.
 */
export async function requestBackfill(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  { since, until }: PassRange,
): Promise<PassRequest> {
  const from = timestamp(since);
  const { rows } = await sql<PassRequest>`
    WITH wanted AS (
      SELECT name, widened_at, date_trunc('milliseconds', COALESCE(${timestamp(until)},
        GREATEST(clock_timestamp(), last_delivered_at))) AS until
      FROM ${tables.feeds} WHERE name = ${feed}
    ),
    joined AS (
      UPDATE ${tables.passes} AS pass SET until = GREATEST(pass.until, wanted.until)
      FROM wanted
      WHERE finished_at IS NULL AND id = (
        SELECT min(id) FROM ${tables.passes} AS earlier
        WHERE earlier.feed = wanted.name AND kind = 'backfill' AND finished_at IS NULL
          AND COALESCE(since, '-infinity') <= COALESCE(${from}, '-infinity')
          AND COALESCE(${from}, '-infinity') <= earlier.until
          AND begun_at > COALESCE(widened_at, '-infinity'))
      RETURNING pass.*
    ),
    begun AS (
      INSERT INTO ${tables.passes} (feed, kind, since, until)
      SELECT name, 'backfill', ${from}, until FROM wanted WHERE NOT EXISTS (SELECT FROM joined)
      RETURNING *
    )
    SELECT ${COLUMNS}, true AS joined FROM joined UNION ALL SELECT ${COLUMNS}, false FROM begun`.execute(db);
  const row = rows[0];
  if (row === undefined) throw new Error(`there is no feed ${feed}`);
  return row;
}

/**
 * Requests a recent pass, in place of an unfinished one, which has read too early; or a full pass, which joins an unfinished
 * one, so that what that has read is not thrown away. Without `until` it reads up to what the feed is complete to, by the
 * later of the database's clock and the last delivery: reading too far finds what the cursor would have found, reading too
 * short would miss something. A pass with `until`, or one that begins after the last completed pass ended, leaves a gap: it
 * claims nothing about freshness.
 * @param kind a full pass reads from the start of the feed, whatever the range
 * @param since delivery time; or milliseconds before its end, and then it begins early enough to leave no gap
 * @returns null while the feed has not reached its end; for a full pass also while the history is unfinished, or the feed has
 *   not caught up since its filters widened
 */
export async function requestReconciliation(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  kind: 'recent' | 'full',
  { since, until }: { readonly since: Date | number; readonly until: Date | null },
): Promise<PassRequest | null> {
  const end = sql`LEAST(${timestamp(until)}, ${COMPLETE_TO})`;
  const completed = completedUntil(tables, feed, kind);
  const from =
    typeof since === 'number'
      ? sql`LEAST(${end} - ${since} * interval '1 millisecond', ${completed} - interval ${OVERLAP})`
      : timestamp(since);
  const leavesNoGap = kind === 'full' ? sql`true` : sql`${from} <= COALESCE(${completed}, 'infinity')`;
  return db.transaction().execute(async (tx) => {
    // If this process is frozen or cut off meanwhile, the feed's row is free again soon.
    await sql`SET LOCAL idle_in_transaction_session_timeout = '5s'`.execute(tx);
    // Its leader begins no pass while the row is locked.
    const { rows: ready } = await sql`
      SELECT FROM ${tables.feeds} AS feed
      WHERE name = ${feed} AND data_complete_as_of IS NOT NULL AND end_reached_at IS NOT NULL
        AND (${kind === 'recent'} OR NOT ${historyIsUnfinished(tables)} AND ${hasCaughtUpSinceWidening(sql`feed`)})
      FOR NO KEY UPDATE`.execute(tx);
    if (ready.length === 0) return null;
    const { rows: joined } = await sql<PassRequest>`
      SELECT ${COLUMNS}, true AS joined FROM ${tables.passes}
      WHERE feed = ${feed} AND kind = 'full' AND kind = ${kind} AND finished_at IS NULL
        AND begun_at > (SELECT COALESCE(widened_at, '-infinity') FROM ${tables.feeds} WHERE name = ${feed})`.execute(
      tx,
    );
    if (joined[0] !== undefined) return joined[0];
    await cancelPasses(tx, tables, feed, [kind]);
    await prunePasses(tx, tables, feed, kind);
    const { rows } = await sql<PassRequest>`
      INSERT INTO ${tables.passes} (feed, kind, since, until, complete_as_of)
      SELECT name, ${kind}, GREATEST(${kind === 'full' ? sql`NULL` : from}, start_since), ${end},
        CASE WHEN ${until === null} AND ${leavesNoGap} THEN data_complete_as_of END
      FROM ${tables.feeds} WHERE name = ${feed}
      RETURNING ${COLUMNS}, false AS joined`.execute(tx);
    return rows[0] ?? null;
  });
}

/** A recent pass begins this much before the last one ended, whichever time the service understands by `since`. */
const OVERLAP = sql.lit('10 minutes');

/** Whole milliseconds, rounded up. */
const COMPLETE_TO = sql`date_trunc('milliseconds', GREATEST(data_complete_as_of, last_delivered_at)) + interval '1 ms'`;

function timestamp(time: Date | null): RawBuilder<Date | null> {
  return sql`${time?.toISOString() ?? null}::timestamptz`;
}

/** Null if it does not exist any more. */
export async function readPass(db: Kysely<unknown>, tables: Tables, id: string): Promise<RequestedPass | null> {
  const { rows } = await sql<RequestedPass>`
    SELECT ${COLUMNS} FROM ${tables.passes} WHERE id = ${id}::bigint`.execute(db);
  return rows[0] ?? null;
}

/** Ends the unfinished passes of these kinds before their end. What they have stored stays. */
export async function cancelPasses(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  kinds: readonly PassKind[],
): Promise<readonly RequestedPass[]> {
  const { rows } = await sql<RequestedPass>`
    UPDATE ${tables.passes} SET finished_at = clock_timestamp(), cancelled = true
    WHERE feed = ${feed} AND kind = ANY (${kinds}) AND finished_at IS NULL
    RETURNING ${COLUMNS}`.execute(db);
  return rows;
}
