import { type RawBuilder, sql } from 'kysely';
import type { EntryBatch } from '../../sync/ports/index.js';
import { RUN_COLUMNS } from '../schema/run-columns.js';
import type { Tables } from '../schema/schema.js';
import { contradiction, entry, steeringDiffers, unionOf } from './union-of-sources.js';

/** Columns whose values are united from all sources of a revision, in a fixed order. */
const UNION_COLUMNS = [...RUN_COLUMNS, 'pending'] as const;
/** The same as a select list from `received`, with whether the entry states its test mode. */
export const UNION = sql.raw([...UNION_COLUMNS, 'states_test_mode'].join(', '));
const STORED_UNION = sql.raw([...RUN_COLUMNS, 'pending_reason', 'true'].join(', '));

export function hasRepeatedScans(entries: EntryBatch): boolean {
  return new Set(entries.map(({ run }) => run.scanId)).size < entries.length;
}

/**
 * Parts of the commit statement for a page that lists a scan more than once, between `received` and `candidate`. `repeated` has
 * those scans with their highest revision; `united` the union of the entries of that revision, in their order, as if each had its
 * own page. If the stored row has the same revision, the union starts with it. `others` counts the other entries of the scan.
 */
export function unitedEntries(tables: Tables): RawBuilder<unknown> {
  const [united, next] = [entry('united'), entry('next')];
  const union = unionOf(united, next, sql`compared.contradicts`);
  return sql`
repeated AS MATERIALIZED (
  SELECT scan_id, max(revision) AS revision FROM received GROUP BY scan_id HAVING count(*) > 1
),
member AS MATERIALIZED ( -- without values, so that sorting is cheap
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
    SELECT scan_id, received.revision, ${UNION}, 0 AS others_conflicts, number, members
    FROM member JOIN received USING (scan_id, position) WHERE number = 1
    UNION ALL
    SELECT scan_id, revision, ${STORED_UNION}, 0, number, members
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
)`;
}
