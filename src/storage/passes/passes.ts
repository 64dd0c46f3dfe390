import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LastPass, NewPass, Pass, PassCommit, PassStore, ReadingPace } from '../../sync/ports/index.js';
import { fenceColumns, isHeld } from '../commit/fence.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import type { ScanfeedSchema, Tables } from '../schema/schema.js';

const PASS = sql`pass.id::text, pass.begun_at AS "begunAt", pass.kind, pass.since, pass.until, pass.cursor,
      pass.delivered_up_to AS "deliveredUpTo", pass.entries::double precision, pass.stored::double precision`;

/** For rows `pass` and `feed`: a full pass that began before the filters were widened has not read the runs they now include. */
const IS_OUTDATED = sql`(pass.kind = 'full' AND pass.begun_at <= COALESCE(feed.filters_widened_at, '-infinity'))`;

/** For a row of `passes`: the pass has read everything up to where the feed was complete when the pass began. */
const IS_COMPLETED = sql<boolean>`(finished_at IS NOT NULL AND NOT cancelled AND complete_as_of IS NOT NULL)`;

/** Creates the engine's access to passes. */
export function createPasses({ db, tables }: StoreConnection): Omit<PassStore, 'commitPass'> {
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
          WHERE feed = ${feed} AND kind = ${kind} AND (finished_at IS NULL OR cancelled OR ${IS_COMPLETED})
          UNION ALL
          SELECT 0, 'full', created_at, GREATEST(end_reached_at, ${historyReadAt(tables)})
          FROM feed WHERE ${kind} = 'full' AND ${historyIsComplete(tables)}
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
      if (rows.length > 0) await prunePasses(db, lease.feed, kind);
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
export async function prunePasses(db: Kysely<ScanfeedSchema>, feed: string, kind: NewPass['kind']): Promise<void> {
  const lastCompleted = db
    .selectFrom('passes')
    .select(({ fn }) => fn.max('id').as('id'))
    .where('feed', '=', feed)
    .where('kind', '=', kind)
    .where(IS_COMPLETED);
  await db
    .deleteFrom('passes')
    .where('feed', '=', feed)
    .where('kind', '=', kind)
    .where('id', '<', lastCompleted)
    .execute();
}

/**
 * Fence of a page of a pass: the lease and the position of the pass are those that the page was read with. Both rows stay locked
 * until the commit, so if two processes run the same pass (a leader and a command), the second one writes nothing.
 */
export function fenceOnPass(tables: Tables, commit: PassCommit): RawBuilder<unknown> {
  const { lease, id, begunAt, from, until, finished, feedHadCursor } = commit;
  const completeAsOf = finished ? COMPLETE_AFTER_PASS : undefined;
  return sql`
  SELECT ${fenceColumns(completeAsOf)}, pass.kind FROM ${tables.feeds} AS feed JOIN ${tables.passes} AS pass ON pass.feed = feed.name
  WHERE ${isHeld(lease)} AND pass.id = ${id}::bigint AND pass.begun_at = ${timestamp(begunAt)}
    AND pass.finished_at IS NULL AND pass.cursor IS NOT DISTINCT FROM ${from}::text
    AND pass.until = ${timestamp(until)}
    AND (${!finished || feedHadCursor} OR pass.kind <> 'history' OR feed.cursor IS NULL)
  FOR NO KEY UPDATE`;
}

/** Minimum overlap for a backfill to extend the complete range of the feed, to allow for differing clocks. */
const BACKFILL_OVERLAP = sql.lit('1 hour');

/**
 * For rows `pass` and `feed`: the history ends while the feed is still read by `since`, which may leave out runs of any delivery
 * time. So the feed continues where the history ended, its freshness is unknown until then, and a page that was requested before
 * is fenced.
 */
const READ_BY_TIME = sql`(pass.kind = 'history' AND feed.cursor IS NULL)`;
/** For rows `pass` and `feed`, when the pass finishes. */
const COMPLETE_AFTER_PASS = sql`CASE WHEN NOT ${READ_BY_TIME} THEN feed.data_complete_as_of END`;

/** Part of a commit, after `stored` and `filled`: the new position of the pass and, at its end, the freshness of the feed. */
export function passPosition(tables: Tables, commit: PassCommit): RawBuilder<unknown> {
  const { lease, id, to, finished, deliveredUpTo, entries, pace } = commit;
  const claims = sql`,
claimed AS (
  UPDATE ${tables.feeds} AS feed SET
    reconciled_as_of = GREATEST(feed.reconciled_as_of, pass.complete_as_of),
    start_since = CASE WHEN pass.kind = 'history' THEN pass.since ELSE feed.start_since END,
    data_complete_as_of = ${COMPLETE_AFTER_PASS},
    cursor = CASE WHEN ${READ_BY_TIME} AND feed.resume_since IS NULL THEN pass.cursor ELSE feed.cursor END,
    lease_epoch = feed.lease_epoch + CASE WHEN ${READ_BY_TIME} THEN 1 ELSE 0 END,
    complete_from = CASE
      WHEN pass.kind = 'recent' OR pass.begun_at <= feed.filters_widened_at THEN feed.complete_from
      WHEN pass.kind IN ('full', 'history') OR pass.until >= feed.complete_from + interval ${BACKFILL_OVERLAP}
        THEN LEAST(feed.complete_from, COALESCE(pass.since, '-infinity'))
      ELSE feed.complete_from END
  FROM pass WHERE feed.name = ${lease.feed}
)`;
  return sql`
pass AS (
  UPDATE ${tables.passes} SET
    cursor = ${to}::text,
    delivered_up_to = GREATEST(delivered_up_to, ${timestamp(deliveredUpTo)}),
    entries = entries + ${entries},
    stored = stored + ${runsStored(commit)},
    last_commit_at = clock_timestamp(),
    ${paceColumns(pace)},
    finished_at = ${finished ? sql`clock_timestamp()` : sql`NULL`}
  WHERE EXISTS (SELECT FROM fence) AND id = ${id}::bigint
  RETURNING *
)${finished ? claims : sql``}`;
}

/** Returns the number of runs that this commit inserts or updates. */
function runsStored({ batch }: PassCommit): RawBuilder<number> {
  if (batch.length === 0) return sql`0`;
  return sql`(SELECT count(*) FROM stored) + (SELECT count(*) FROM updated)`;
}

function paceColumns(pace: ReadingPace | null): RawBuilder<unknown> {
  return sql`
    entries_per_second = ${pace?.entriesPerSecond ?? null}::double precision,
    seconds_left = ${pace?.secondsLeft ?? null}::double precision,
    rate_measured_at = ${pace === null ? sql`NULL` : sql`clock_timestamp()`}`;
}

/**
 * Inserts the history pass of a live feed that was `taken` for the first time. It reads the runs before the start. The feed
 * itself starts an hour earlier, so that the two overlap even if the clocks differ.
 */
export function beginHistoryPass(tables: Tables): RawBuilder<unknown> {
  return sql`
          INSERT INTO ${tables.passes} (feed, kind, until)
          SELECT name, 'history', date_trunc('milliseconds', clock_timestamp()) FROM taken WHERE lease_epoch = 1`;
}

/** For a row `feed`: when its history pass finished; null: it is unfinished, or there is none. */
function historyReadAt(tables: Tables): RawBuilder<Date | null> {
  return sql`(SELECT finished_at FROM ${tables.passes} AS history
        WHERE history.feed = feed.name AND history.kind = 'history')`;
}

/** For a row `feed`: its history pass is unfinished. */
export function historyIsUnfinished(tables: Tables): RawBuilder<boolean> {
  return sql`EXISTS (SELECT FROM ${tables.passes} AS history
        WHERE history.feed = feed.name AND history.kind = 'history' AND history.finished_at IS NULL)`;
}

/** For a row `feed`: everything from its beginning to its end has been read. */
export function historyIsComplete(tables: Tables): RawBuilder<boolean> {
  return sql`(feed.end_reached_at IS NOT NULL AND NOT ${historyIsUnfinished(tables)})`;
}
