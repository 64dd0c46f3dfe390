import { type RawBuilder, sql } from 'kysely';
import type { CommitSettings } from './commit-settings.js';
import { isBarred } from './deleted-runs.js';
import type { Tables } from './schema.js';

/** Verdicts that lead to a write. */
export const WRITTEN_VERDICTS = sql`('new', 'newer', 'fuller')`;

/**
 * Part of the commit statement, after `received`. `judged`: of each scan its highest revision, of equals the fullest of
 * those with the status that came first, with a verdict against what is stored. Entries that change nothing end here, so
 * that they cost not even a row lock; so do those of runs that were removed (`barred`). `duplicate`: the others of the page.
 */
export function judgedEntries(tables: Tables, { keptDays }: CommitSettings): RawBuilder<unknown> {
  return sql`
candidate AS (
  SELECT received.*
  FROM received JOIN (
    SELECT DISTINCT ON (scan_id) position
    FROM (
      SELECT position, scan_id, revision, pending, markdown IS NULL AS bare, markdown_absent,
        status = first_value(status) OVER (PARTITION BY scan_id, revision ORDER BY position) AS agrees
      FROM received
    ) AS entry -- without the values, so that sorting is cheap
    ORDER BY scan_id, revision DESC, agrees DESC, pending IS NOT NULL, bare, markdown_absent DESC, position
  ) AS best ON best.position = received.position
),
judged AS MATERIALIZED (
  SELECT candidate.*,
    CASE
      WHEN ${isBarred(sql`candidate`, keptDays)} THEN 'barred'
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN candidate.status = known.status AND (
        known.result_state = 'pending' AND candidate.pending IS NULL
        OR known.markdown IS NULL AND (candidate.markdown IS NOT NULL OR candidate.markdown_absent AND NOT known.markdown_absent)
        OR known.delivered_at IS NULL AND candidate.delivered_at IS NOT NULL) THEN 'fuller'
      ELSE 'same'
    END AS verdict,
    COALESCE(candidate.revision = known.revision AND ${contentDiffers('candidate', 'known')}, false) AS conflicting
  FROM candidate
  LEFT JOIN (SELECT *, CASE WHEN result_state = 'pending' THEN pending_reason END AS pending FROM ${tables.runs}) AS known
    ON known.scan_id = candidate.scan_id
  LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = candidate.scan_id
),
duplicate AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE other.revision < judged.revision)::int AS stale,
    count(*) FILTER (WHERE other.revision = judged.revision)::int AS same,
    count(*) FILTER (WHERE other.revision = judged.revision AND ${contentDiffers('other', 'judged')})::int AS conflicts
  FROM judged -- the others first: mostly there are none, and the values of no entry are copied for the join
  JOIN (SELECT * FROM received WHERE position NOT IN (SELECT position FROM judged)) AS other
    ON other.scan_id = judged.scan_id
)`;
}

/** Same revision, other content. Data is compared only where neither side waits for its full result. */
function contentDiffers(left: string, right: string): RawBuilder<unknown> {
  const [a, b] = [sql.raw(left), sql.raw(right)];
  return sql`(
    (${a}.status, ${a}.failure_reason, ${a}.error) IS DISTINCT FROM (${b}.status, ${b}.failure_reason, ${b}.error)
    OR ${a}.pending IS NULL AND ${b}.pending IS NULL
      -- Mostly they are the same bytes, which is sooner seen.
      AND NOT ROW(${a}.data)::record OPERATOR(pg_catalog.*=) ROW(${b}.data)::record
      AND ${a}.data IS DISTINCT FROM ${b}.data
  )`;
}
