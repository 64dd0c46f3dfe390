import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { LeaseGrant, SweepKind, SweepState } from '../sync/ports.js';
import type { Tables } from './schema.js';

interface SweepRow {
  kind: SweepKind;
  finished: boolean;
  age_ms: number;
  since: Date | null;
  until: Date;
  cursor: string | null;
}

/** The present or last sweeps of a feed. The first reading of the history counts as a full sweep. */
export async function readSweeps(db: Kysely<unknown>, tables: Tables, feed: string): Promise<readonly SweepState[]> {
  const { rows } = await sql<SweepRow>`
    SELECT kind, finished_at IS NOT NULL AS finished, since, until, cursor,
      extract(epoch FROM clock_timestamp() - COALESCE(finished_at, begun_at))::double precision * 1000 AS age_ms
    FROM ${tables.sweeps} WHERE feed = ${feed}
    UNION ALL
    SELECT 'full', true, start_since, end_reached_at, NULL,
      extract(epoch FROM clock_timestamp() - end_reached_at)::double precision * 1000
    FROM ${tables.feeds}
    WHERE name = ${feed} AND end_reached_at IS NOT NULL
      AND NOT EXISTS (SELECT FROM ${tables.sweeps} WHERE feed = ${feed} AND kind = 'full')`.execute(db);
  return rows.map(({ age_ms: ageMs, ...row }) => ({ ...row, ageMs }));
}

/** Begins a sweep in place of the last one of its kind; false when the lease was lost, or freshness is unknown. */
export async function beginSweep(
  db: Kysely<unknown>,
  tables: Tables,
  lease: LeaseGrant,
  kind: SweepKind,
  since: Date | null,
  until: Date,
): Promise<boolean> {
  const { rows } = await sql`
    WITH fence AS MATERIALIZED (
      SELECT data_complete_as_of, start_since FROM ${tables.feeds}
      WHERE name = ${lease.feed} AND lease_epoch = ${lease.epoch} FOR NO KEY UPDATE
    )
    INSERT INTO ${tables.sweeps} AS sweep (feed, kind, since, until, begun_at, complete_as_of)
    SELECT ${lease.feed}, ${kind}, COALESCE(${since?.toISOString() ?? null}::timestamptz, start_since), ${until.toISOString()}::timestamptz,
      clock_timestamp(), data_complete_as_of
    FROM fence WHERE data_complete_as_of IS NOT NULL
    ON CONFLICT (feed, kind) DO UPDATE SET since = excluded.since, until = excluded.until, cursor = NULL,
      begun_at = excluded.begun_at, complete_as_of = excluded.complete_as_of, finished_at = NULL
    RETURNING kind`.execute(db);
  return rows.length > 0;
}

/** Part of a commit, after `fence`: where the sweep stands. */
export function sweepPosition(
  tables: Tables,
  lease: LeaseGrant,
  kind: SweepKind,
  to: string | null,
  finished: boolean,
): RawBuilder<unknown> {
  const reconciled = sql`,
reconciled AS (
  UPDATE ${tables.feeds} AS feed SET reconciled_as_of = GREATEST(feed.reconciled_as_of, swept.complete_as_of)
  FROM swept WHERE feed.name = ${lease.feed}
)`;
  return sql`
swept AS (
  UPDATE ${tables.sweeps} SET
    cursor = ${to}::text,
    finished_at = ${finished ? sql`clock_timestamp()` : sql`NULL`}
  WHERE EXISTS (SELECT FROM fence) AND feed = ${lease.feed} AND kind = ${kind}
  RETURNING complete_as_of
)${finished ? reconciled : sql``}`;
}
