import { type RawBuilder, sql } from 'kysely';
import type { LastPass, NewPass, Pass, PassStore, ReadingPace } from '../../sync/ports/index.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { isHeld } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';

const PASS = sql`pass.id::text, pass.begun_at AS "begunAt", pass.kind, pass.since, pass.until, pass.cursor,
      pass.delivered_up_to AS "deliveredUpTo", pass.entries::double precision, pass.stored::double precision`;

/** For rows `pass` and `feed`: a full pass that began before the filters were widened has not read the runs they now include. */
const IS_OUTDATED = sql`(pass.kind = 'full' AND pass.begun_at <= COALESCE(feed.filters_widened_at, '-infinity'))`;

/**
 * For a row of `passes`: the pass has read everything up to where the feed was complete when the pass began. It has not if a cache
 * repeated a page that was too old (`-infinity`).
 */
const IS_COMPLETED = sql<boolean>`(finished_at IS NOT NULL AND NOT cancelled AND complete_as_of > '-infinity')`;

/** Creates the engine's access to passes. */
export function createPasses({ db, tables }: StoreConnection): PassStore {
  return {
    async nextPass(feed, kind) {
      const { rows } = await sql<Pass>`
        SELECT ${PASS} FROM ${tables.passes} AS pass JOIN ${tables.feeds} AS feed ON feed.name = pass.feed
        WHERE pass.feed = ${feed} AND pass.kind = ${kind} AND finished_at IS NULL AND NOT ${IS_OUTDATED}
          AND feed.last_commit_at IS NOT NULL
        ORDER BY pass.id LIMIT 1`.execute(db);
      return rows[0] ?? null;
    },

    async readLastPass(feed, kind) {
      const { rows } = await sql<LastPass>`
        WITH feed AS (SELECT * FROM ${tables.feeds} WHERE name = ${feed}),
        pass AS (
          SELECT id, kind, begun_at, finished_at FROM ${tables.passes}
          WHERE feed = ${feed} AND kind = ${kind} AND (finished_at IS NULL OR cancelled OR complete_as_of IS NOT NULL)
          UNION ALL
          SELECT 0, 'full', created_at, GREATEST(end_reached_at,
            (SELECT finished_at FROM ${tables.passes} AS history WHERE history.feed = feed.name AND history.kind = 'history'))
          FROM feed WHERE ${kind} = 'full' AND ${initialSyncIsComplete(tables)}
        )
        SELECT CASE WHEN ${IS_OUTDATED} THEN 'Infinity'
            ELSE extract(epoch FROM clock_timestamp() - finished_at)::double precision * 1000 END AS "endedMsAgo",
          ${completedUntil(tables, feed, kind)} AS "completedUntil"
        FROM pass CROSS JOIN feed WHERE finished_at IS NOT NULL OR ${IS_OUTDATED}
        ORDER BY pass.id DESC LIMIT 1`.execute(db);
      return rows[0] ?? null;
    },

    /**
     * Begins a recent or full pass, at the start of the feed or later. It is complete as of `completeAsOf`, from which its end was
     * derived, although the feed may be more complete by now.
     */
    async beginPass(lease, { kind, since, until, completeAsOf }) {
      const { rows } = await sql<Pass>`
        WITH feed AS MATERIALIZED (
          SELECT * FROM ${tables.feeds} WHERE ${isHeld(lease)} FOR NO KEY UPDATE
        ),
        outdated AS (
          UPDATE ${tables.passes} AS pass SET finished_at = clock_timestamp(), cancelled = true
          FROM feed WHERE pass.feed = feed.name AND pass.kind = ${kind} AND finished_at IS NULL AND ${IS_OUTDATED}
          RETURNING pass.id
        )
        INSERT INTO ${tables.passes} AS pass (feed, kind, since, until, complete_as_of)
        SELECT name, ${kind}, GREATEST(${timestamp(since)}, start_since), ${timestamp(until)},
          LEAST(data_complete_as_of, ${timestamp(completeAsOf)})
        FROM feed WHERE data_complete_as_of IS NOT NULL AND (SELECT count(*) FROM outdated) >= 0 -- runs outdated first
          AND (${kind} = 'recent' OR ${hasCaughtUpSinceWidening(sql`LEAST(data_complete_as_of, ${timestamp(completeAsOf)})`)})
        ON CONFLICT (feed, kind) WHERE finished_at IS NULL AND kind <> 'backfill' DO NOTHING
        RETURNING ${PASS}`.execute(db);
      if (rows.length > 0) await prunePasses({ db, tables }, lease.feed, kind);
      return rows[0] ?? null;
    },

    async storePace(lease, pace) {
      await sql`UPDATE ${tables.feeds} SET ${paceColumns(pace)} WHERE ${isHeld(lease)}`.execute(db);
    },
  };
}

/** Returns the end of the last completed pass of a kind; null: there is none. */
export function completedUntil(tables: Tables, feed: string, kind: NewPass['kind']): RawBuilder<Date | null> {
  return sql`(SELECT until FROM ${tables.passes}
        WHERE feed = ${feed} AND kind = ${kind} AND ${IS_COMPLETED} ORDER BY id DESC LIMIT 1)`;
}

/**
 * Condition on a row `feed`: it was complete up to a time since its filters were widened. A full pass ends where the feed is complete; if it ended
 * earlier, it would miss runs that the cursor skipped with the old filters.
 */
export function hasCaughtUpSinceWidening(completeAsOf: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql`(${completeAsOf} >= COALESCE(feed.filters_widened_at, '-infinity'))`;
}

/** Deletes the passes of a kind before the last completed one. */
export async function prunePasses({ db, tables }: StoreConnection, feed: string, kind: NewPass['kind']): Promise<void> {
  await sql`
    DELETE FROM ${tables.passes} WHERE feed = ${feed} AND kind = ${kind} AND id < (
      SELECT max(id) FROM ${tables.passes} WHERE feed = ${feed} AND kind = ${kind} AND ${IS_COMPLETED})`.execute(db);
}

/** Assignments to a row of a feed or a pass. */
export function paceColumns(pace: ReadingPace | null): RawBuilder<unknown> {
  return sql`entries_per_second = ${pace?.entriesPerSecond ?? null}::double precision,
    seconds_left = ${pace?.secondsLeft ?? null}::double precision,
    rate_measured_at = ${pace === null ? sql`NULL` : sql`clock_timestamp()`}`;
}

/**
 * Inserts the history pass of a live feed that was just `created`. It reads the runs before the start. The feed
 * itself starts an hour earlier, so that the two overlap even if the clocks differ.
 */
export function beginHistoryPass(tables: Tables): RawBuilder<unknown> {
  return sql`
          INSERT INTO ${tables.passes} (feed, kind, until)
          SELECT name, 'history', date_trunc('milliseconds', clock_timestamp()) FROM created`;
}

/** For a row `feed`: its history pass is unfinished. */
export function historyIsUnfinished(tables: Tables): RawBuilder<boolean> {
  return sql`EXISTS (SELECT FROM ${tables.passes} AS history
        WHERE history.feed = feed.name AND history.kind = 'history' AND history.finished_at IS NULL)`;
}

/** For a row `feed`: everything from its beginning to its end has been read. */
export function initialSyncIsComplete(tables: Tables): RawBuilder<boolean> {
  return sql`(feed.end_reached_at IS NOT NULL AND NOT ${historyIsUnfinished(tables)})`;
}
