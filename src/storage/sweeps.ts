import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LeaseGrant, NewSweep, SweepCommit, SweepKind, SweepState } from '../sync/ports.js';
import { backfillIsComplete, historyReadAt } from './backfills.js';
import { AS_OF } from './fence.js';
import type { Tables } from './schema.js';

interface SweepRow {
  kind: SweepKind;
  id: string;
  finished: boolean;
  age_ms: number;
  since: Date | null;
  until: Date;
  cursor: string | null;
}

/** A sweep is known by when it began, to the microsecond: in text, since a Date would round it. */
const ID = sql`extract(epoch FROM begun_at)`;

/**
 * The present or last sweeps of a feed. The first reading of the history counts as a full sweep. One from before the
 * filters widened has not read what they include now: it is as good as none, and overdue.
 */
export async function readSweeps(db: Kysely<unknown>, tables: Tables, feed: string): Promise<readonly SweepState[]> {
  const { rows } = await sql<SweepRow>`
    WITH feed AS (SELECT * FROM ${tables.feeds} WHERE name = ${feed}),
    sweep AS (
      SELECT kind, since, until, cursor, begun_at, finished_at FROM ${tables.sweeps} WHERE feed = ${feed}
      UNION ALL
      SELECT 'full', start_since, end_reached_at, NULL, created_at, GREATEST(end_reached_at, ${historyReadAt(tables)})
      FROM feed WHERE ${backfillIsComplete(tables)}
        AND NOT EXISTS (SELECT FROM ${tables.sweeps} WHERE feed = ${feed} AND kind = 'full')
    )
    SELECT kind, ${ID}::text AS id, sweep.since, sweep.until, sweep.cursor, finished_at IS NOT NULL OR overtaken AS finished,
      CASE WHEN overtaken THEN 'Infinity'
        ELSE extract(epoch FROM clock_timestamp() - COALESCE(finished_at, begun_at))::double precision * 1000
      END AS age_ms
    FROM sweep CROSS JOIN feed
    CROSS JOIN LATERAL (SELECT kind = 'full' AND begun_at < COALESCE(widened_at, '-infinity') AS overtaken) AS age`.execute(
    db,
  );
  return rows.map(({ age_ms: ageMs, ...row }) => ({ ...row, ageMs }));
}

/**
 * Begins a sweep in place of the last one of its kind, not before the feed's own start; false when the lease was lost, or
 * freshness is unknown. One that is under way is not replaced: a statement that comes late, after its answer was given up,
 * would have it said to be finished as of then, although what it had read was read before. For the same reason it counts as
 * of the time that its end was reckoned from, although the feed may have become more complete since.
 */
export async function beginSweep(
  db: Kysely<unknown>,
  tables: Tables,
  lease: LeaseGrant,
  { kind, since, until, completeAsOf }: NewSweep,
): Promise<boolean> {
  const { rows } = await sql`
    WITH fence AS MATERIALIZED (
      SELECT data_complete_as_of, start_since, widened_at FROM ${tables.feeds}
      WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} FOR NO KEY UPDATE
    )
    INSERT INTO ${tables.sweeps} AS sweep (feed, kind, since, until, begun_at, complete_as_of)
    SELECT ${lease.feed}, ${kind}, GREATEST(${since?.toISOString() ?? null}::timestamptz, start_since), ${until.toISOString()}::timestamptz,
      clock_timestamp(), LEAST(data_complete_as_of, ${completeAsOf.toISOString()}::timestamptz)
    FROM fence WHERE data_complete_as_of IS NOT NULL
    ON CONFLICT (feed, kind) DO UPDATE SET since = excluded.since, until = excluded.until, cursor = NULL,
      begun_at = excluded.begun_at, complete_as_of = excluded.complete_as_of, finished_at = NULL
    WHERE sweep.finished_at IS NOT NULL
      OR sweep.kind = 'full' AND sweep.begun_at < (SELECT widened_at FROM fence)
    RETURNING kind`.execute(db);
  return rows.length > 0;
}

/**
 * A fence for writes of a sweep: the epoch holds, this very sweep is under way, and its position is the one that the writer
 * read from. Otherwise a late statement could move or finish a later sweep, and pages that the database has lost (a failover,
 * synchronous_commit=off) would never be read again.
 */
export function fenceOnSweep(tables: Tables, { lease, kind, id, from }: SweepCommit): RawBuilder<unknown> {
  return sql`
  SELECT ${AS_OF} FROM ${tables.feeds} AS feed JOIN ${tables.sweeps} AS sweep ON sweep.feed = feed.name
  WHERE feed.name = ${lease.feed} AND feed.lease_epoch = ${lease.epoch} AND sweep.kind = ${kind}
    AND ${ID} = ${id}::numeric AND sweep.finished_at IS NULL AND sweep.cursor IS NOT DISTINCT FROM ${from}::text
  FOR NO KEY UPDATE`;
}

/** Part of a commit, after `fence`: where the sweep stands. */
export function sweepPosition(tables: Tables, { lease, kind, to, finished }: SweepCommit): RawBuilder<unknown> {
  const readEverything = sql`${kind === 'full'} AND feed.widened_at <= swept.begun_at`;
  const reconciled = sql`,
reconciled AS (
  UPDATE ${tables.feeds} AS feed SET
    reconciled_as_of = GREATEST(feed.reconciled_as_of, swept.complete_as_of),
    complete_from = CASE WHEN ${readEverything} THEN COALESCE(feed.start_since, '-infinity') ELSE feed.complete_from END,
    widened_at = CASE WHEN ${readEverything} THEN NULL ELSE feed.widened_at END
  FROM swept WHERE feed.name = ${lease.feed}
)`;
  return sql`
swept AS (
  UPDATE ${tables.sweeps} SET
    cursor = ${to}::text,
    finished_at = ${finished ? sql`clock_timestamp()` : sql`NULL`}
  WHERE EXISTS (SELECT FROM fence) AND feed = ${lease.feed} AND kind = ${kind}
  RETURNING complete_as_of, begun_at
)${finished ? reconciled : sql``}`;
}
