import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** A backfill that a person asked for. */
export interface RequestedBackfill {
  /** A bigint as text. */
  readonly id: string;
  /** Delivery time, service clock; null: the beginning of the history. */
  readonly since: Date | null;
  readonly until: Date;
  readonly requestedAt: Date;
  readonly deliveredUpTo: Date | null;
  readonly entries: number;
  /** Runs inserted or updated. */
  readonly stored: number;
  readonly entriesPerSecond: number | null;
  readonly secondsLeft: number | null;
  /** Milliseconds since its last page, by the database's clock; null: it has none yet. */
  readonly idleMs: number | null;
  readonly finishedAt: Date | null;
  readonly stopped: boolean;
}

const COLUMNS = sql`id::text, since, until, requested_at AS "requestedAt", delivered_up_to AS "deliveredUpTo",
      entries::double precision, stored::double precision, entries_per_second AS "entriesPerSecond",
      seconds_left AS "secondsLeft",
      extract(epoch FROM clock_timestamp() - last_commit_at)::double precision * 1000 AS "idleMs",
      finished_at AS "finishedAt", stopped`;

/**
 * Asks for a stretch to be read again. One under way that begins no later and reaches up to the beginning of this one is
 * joined: it goes on where it stands, and its end moves out. So the same request made twice is one.
 * @param since null: from the beginning of the history
 * @param until null: up to now, by the later of the database's clock and the last delivery
 */
export async function requestBackfill(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  since: Date | null,
  until: Date | null,
): Promise<RequestedBackfill & { readonly joined: boolean }> {
  const from = sql`${since?.toISOString() ?? null}::timestamptz`;
  const { rows } = await sql<RequestedBackfill & { joined: boolean }>`
    WITH stretch AS (
      SELECT name, widened_at, date_trunc('milliseconds', COALESCE(${until?.toISOString() ?? null}::timestamptz,
        GREATEST(clock_timestamp(), last_delivered_at))) AS until
      FROM ${tables.feeds} WHERE name = ${feed}
    ),
    joined AS (
      UPDATE ${tables.backfills} AS backfill SET until = GREATEST(backfill.until, stretch.until)
      FROM stretch
      WHERE finished_at IS NULL AND id = (
        SELECT min(id) FROM ${tables.backfills} AS earlier
        WHERE earlier.feed = stretch.name AND kind = 'request' AND finished_at IS NULL
          AND COALESCE(since, '-infinity') <= COALESCE(${from}, '-infinity')
          AND COALESCE(${from}, '-infinity') <= earlier.until
          AND requested_at > COALESCE(widened_at, '-infinity'))
      RETURNING backfill.*
    ),
    begun AS (
      INSERT INTO ${tables.backfills} (feed, kind, since, until)
      SELECT name, 'request', ${from}, until FROM stretch WHERE NOT EXISTS (SELECT FROM joined)
      RETURNING *
    )
    SELECT ${COLUMNS}, true AS joined FROM joined UNION ALL SELECT ${COLUMNS}, false FROM begun`.execute(db);
  const row = rows[0];
  if (row === undefined) throw new Error(`there is no feed ${feed}`);
  return row;
}

/** Null where it does not exist (any more). */
export async function readBackfill(db: Kysely<unknown>, tables: Tables, id: string): Promise<RequestedBackfill | null> {
  const { rows } = await sql<RequestedBackfill>`
    SELECT ${COLUMNS} FROM ${tables.backfills} WHERE id = ${id}::bigint`.execute(db);
  return rows[0] ?? null;
}

/** Ends the requested backfills of a feed where they stand; those that were under way. What they stored stays. */
export async function stopBackfills(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
): Promise<readonly RequestedBackfill[]> {
  const { rows } = await sql<RequestedBackfill>`
    UPDATE ${tables.backfills} SET finished_at = clock_timestamp(), stopped = true
    WHERE feed = ${feed} AND kind = 'request' AND finished_at IS NULL
    RETURNING ${COLUMNS}`.execute(db);
  return rows;
}
