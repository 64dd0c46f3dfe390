import { type RawBuilder, sql } from 'kysely';
import type { EntryBatch } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { isBarred } from './deleted-runs.js';
import type { Tables } from './schema.js';
import {
  changes,
  contradiction,
  entry,
  steeringDiffers,
  storedRow,
  UNION_COLUMNS,
  unionOf,
} from './union-of-sources.js';

/** Verdicts that lead to a write. */
export const WRITTEN_VERDICTS = sql`('new', 'newer', 'completes')`;

/**
 * Part of the commit statement, after `received`. `judged`: of each scan its highest revision on the page, with a verdict
 * against what is stored. Entries that change nothing end here, so that they cost not even a row lock; so do those of runs
 * that were removed (`barred`). `others_…`: what became of the scan's other entries on the page.
 */
export function judgedEntries(tables: Tables, batch: EntryBatch, { keptDays }: CommitSettings): RawBuilder<unknown> {
  const [candidate, known] = [entry('candidate'), storedRow('known')];
  return sql`
${hasRepeatedScans(batch) ? candidatesOfRepeatedScans(tables) : candidates(sql``)},
judged AS MATERIALIZED (
  SELECT candidate.*, compared.contradicts,
    CASE
      WHEN ${isBarred(sql`candidate`, keptDays)} THEN 'barred'
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN ${changes(known, candidate, sql`compared.contradicts`)} THEN 'completes'
      ELSE 'same'
    END AS verdict,
    -- Entries that were united with the stored row have been compared with it.
    COALESCE(NOT united AND candidate.revision = known.revision
      AND (compared.contradicts OR ${steeringDiffers(known, candidate)}), false) AS conflicting
  FROM candidate
  LEFT JOIN ${tables.runs} AS known ON known.scan_id = candidate.scan_id
  LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = candidate.scan_id
  -- OFFSET 0: contents are compared once.
  CROSS JOIN LATERAL (
    SELECT candidate.revision = known.revision AND ${contradiction(known, candidate)} AS contradicts OFFSET 0
  ) AS compared
)`;
}

/** Most pages list each scan once, and need not be sorted. */
function hasRepeatedScans({ entries }: EntryBatch): boolean {
  return new Set(entries.map(({ run }) => run.scanId)).size < entries.length;
}

function candidates(where: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`
candidate AS (
  SELECT scan_id, revision, ${COLUMNS}, false AS united, 0 AS others_same, 0 AS others_stale, 0 AS others_conflicts
  FROM received ${where}
)`;
}

/**
 * Where a scan is listed more than once: the union of the entries of its highest revision, in their order, as if each had
 * come on a page of its own. It begins with the stored row where that is of the same revision.
 */
function candidatesOfRepeatedScans(tables: Tables): RawBuilder<unknown> {
  const [united, next] = [entry('united'), entry('next')];
  const union = unionOf(united, next, sql`compared.contradicts`);
  return sql`
repeated AS MATERIALIZED (
  SELECT scan_id, max(revision) AS revision FROM received GROUP BY scan_id HAVING count(*) > 1
),
member AS MATERIALIZED ( -- without the values, so that sorting is cheap
  SELECT *, row_number() OVER (PARTITION BY scan_id ORDER BY position) AS number, count(*) OVER (PARTITION BY scan_id) AS members
  FROM (
    SELECT scan_id, position FROM received JOIN repeated USING (scan_id, revision)
    UNION ALL
    SELECT scan_id, 0 FROM ${tables.runs} AS run JOIN repeated USING (scan_id, revision)
  ) AS source
),
others AS MATERIALIZED (
  SELECT scan_id,
    count(*) FILTER (WHERE received.revision = repeated.revision AND NOT is_answer)::int - 1 AS others_same,
    count(*) FILTER (WHERE received.revision < repeated.revision AND NOT is_answer)::int AS others_stale
  FROM received JOIN repeated USING (scan_id) GROUP BY scan_id
),
united AS MATERIALIZED (
  WITH RECURSIVE united AS (
    SELECT scan_id, received.revision, ${COLUMNS}, 0 AS others_conflicts, number, members
    FROM member JOIN received USING (scan_id, position) WHERE number = 1
    UNION ALL
    SELECT scan_id, revision, ${STORED_COLUMNS}, 0, number, members
    FROM member JOIN ${tables.runs} AS run USING (scan_id) WHERE position = 0
    UNION ALL
    SELECT united.scan_id, united.revision, ${sql.join(UNION_COLUMNS.map((name) => union[name]))},
      united.states_test_mode OR next.states_test_mode,
      united.others_conflicts + (compared.contradicts OR ${steeringDiffers(united, next)})::int,
      member.number, united.members
    FROM united
    JOIN member ON member.scan_id = united.scan_id AND member.number = united.number + 1
    JOIN received AS next ON next.position = member.position
    CROSS JOIN LATERAL (SELECT ${contradiction(united, next)} AS contradicts OFFSET 0) AS compared
  )
  SELECT * FROM united WHERE number = members
),
${candidates(sql`WHERE scan_id NOT IN (SELECT scan_id FROM repeated)
  UNION ALL
  SELECT scan_id, revision, ${COLUMNS}, true, others_same, others_stale, others_conflicts
  FROM united JOIN others USING (scan_id)`)}`;
}

const COLUMNS = sql.raw([...UNION_COLUMNS, 'states_test_mode'].join(', '));
const STORED_COLUMNS = sql.raw(
  [...UNION_COLUMNS.map((name) => (name === 'pending' ? 'pending_reason' : name)), 'true'].join(', '),
);
