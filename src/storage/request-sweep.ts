import { type Kysely, sql } from 'kysely';
import type { SweepKind } from '../sync/ports.js';
import { historyIsBehind } from './backfills.js';
import type { Tables } from './schema.js';

/** A sweep that the leader is to run, or runs. */
export interface RequestedSweep {
  /** Delivery time, service clock; null: the start of the feed. */
  readonly since: Date | null;
  readonly until: Date;
  readonly begunAt: Date;
}

/** The sweep of this kind that is under way; null: none, or one from before the filters widened. */
export async function readSweepUnderWay(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  kind: SweepKind,
): Promise<RequestedSweep | null> {
  const { rows } = await sql<RequestedSweep>`
    SELECT sweep.since, sweep.until, sweep.begun_at AS "begunAt"
    FROM ${tables.sweeps} AS sweep JOIN ${tables.feeds} AS feed ON feed.name = sweep.feed
    WHERE sweep.feed = ${feed} AND kind = ${kind} AND finished_at IS NULL
      AND begun_at >= COALESCE(widened_at, '-infinity')`.execute(db);
  return rows[0] ?? null;
}

/**
 * Begins a sweep in place of the last one of its kind, for the feed's leader to run. The epoch goes up with it: a leader
 * that runs one now would note its own progress on this one; so it starts anew, and begins with the sweep.
 *
 * It reads up to what the feed is complete to, by the later of the database's clock and the last delivery: reading too
 * far finds what the cursor would have found, reading too short would miss something.
 * @param windowMs how far back it reads, at most to the start of the feed; null: from there
 * @returns null while the feed's history is still being read
 */
export async function requestSweep(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  windowMs: number | null,
): Promise<RequestedSweep | null> {
  const kind: SweepKind = windowMs === null ? 'full' : 'window';
  const since =
    windowMs === null
      ? sql`start_since`
      : sql`GREATEST(${COMPLETE_TO} - ${windowMs} * interval '1 millisecond', start_since)`;
  const { rows } = await sql<RequestedSweep>`
    WITH fence AS (
      UPDATE ${tables.feeds} AS feed SET lease_epoch = lease_epoch + 1
      WHERE name = ${feed} AND data_complete_as_of IS NOT NULL AND end_reached_at IS NOT NULL
        AND (${kind === 'window'} OR NOT ${historyIsBehind(tables)})
      RETURNING *
    )
    INSERT INTO ${tables.sweeps} (feed, kind, since, until, begun_at, complete_as_of)
    SELECT name, ${kind}, ${since}, ${COMPLETE_TO}, clock_timestamp(), data_complete_as_of FROM fence
    ON CONFLICT (feed, kind) DO UPDATE SET since = excluded.since, until = excluded.until, cursor = NULL,
      begun_at = excluded.begun_at, complete_as_of = excluded.complete_as_of, finished_at = NULL
    RETURNING since, until, begun_at AS "begunAt"`.execute(db);
  return rows[0] ?? null;
}

const COMPLETE_TO = sql`GREATEST(data_complete_as_of, last_delivered_at)`;
