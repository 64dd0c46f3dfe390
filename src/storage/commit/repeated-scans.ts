import { type RawBuilder, sql } from 'kysely';
import type { EntryBatch } from '../../sync/ports/index.js';
import { RUN_COLUMNS } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { contradiction, entry, restatesTestMode, steeringDiffers, unionOf } from './union-of-sources.js';

/** Columns whose values are united from all sources of a revision, in a fixed order. */
const UNION_COLUMNS = [...RUN_COLUMNS, 'pending'] as const;
/** The same, with whether one of the sources is the single-run response. */
export const CANDIDATE_COLUMNS = [...UNION_COLUMNS, 'is_answer'] as const;
/** The same as a select list from `received`. */
export const UNION = sql.raw(CANDIDATE_COLUMNS.join(', '));
/** Columns of `others` that replace those of `united`. */
const OF_ALL_ENTRIES: Readonly<Partial<Record<string, string>>> = {
  partner_test_mode: 'COALESCE(test_mode[2] = 1, false)',
  test_mode_revision: 'test_mode[1]',
};
const STORED_UNION = sql.raw([...RUN_COLUMNS, 'pending_reason', 'false'].join(', '));

export function hasRepeatedScans(entries: EntryBatch): boolean {
  return new Set(entries.map(({ run }) => run.scanId)).size < entries.length;
}

/**
 * Parts of the commit statement for a page that lists a scan more than once, between `received` and `candidate`. `repeated` has
 * those scans with their highest revision; `united` the union of the entries of that revision, in their order, as if each had its
 * own page. If the stored row has the same revision, the union starts with it. `others` counts the other entries of the scan, and
 * has the test mode that all of them state, of any revision.
 */
export function unitedEntries(tables: Tables): RawBuilder<unknown> {
  const [united, next] = [entry('united'), entry('next')];
  const union = unionOf(united, next, {
    contradicts: sql`compared.contradicts`,
    restates: restatesTestMode(united, next),
    inDoubt: sql`false`, // this is decided with the stored row
  });
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
    GREATEST(count(*) FILTER (WHERE received.revision = repeated.revision AND NOT is_answer)::int - 1, 0) AS others_same,
    count(*) FILTER (WHERE received.revision < repeated.revision AND NOT is_answer)::int AS others_stale,
    max(ARRAY[test_mode_revision, partner_test_mode::int]) FILTER (WHERE test_mode_revision IS NOT NULL) AS test_mode
  FROM received JOIN repeated USING (scan_id) GROUP BY scan_id
),
united AS MATERIALIZED (
  WITH RECURSIVE united AS (
    SELECT scan_id, received.revision, ${UNION}, 0 AS others_conflicts, number, members
    FROM member JOIN received USING (scan_id, position) WHERE member.number = 1
    UNION ALL
    SELECT scan_id, run.revision, ${STORED_UNION}, 0, member.number, member.members
    FROM member JOIN ${tables.runs} AS run USING (scan_id) WHERE member.position = 0
    UNION ALL
    SELECT united.scan_id, united.revision, ${sql.join(UNION_COLUMNS.map((name) => union[name]))},
      united.is_answer OR next.is_answer,
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

/** The end of `candidate` for a page that lists a scan more than once. */
export const UNITED_CANDIDATES = sql`WHERE scan_id NOT IN (SELECT scan_id FROM repeated)
  UNION ALL
  SELECT scan_id, revision, ${sql.raw(CANDIDATE_COLUMNS.map((name) => OF_ALL_ENTRIES[name] ?? name).join(', '))},
    true, others_same, others_stale, others_conflicts
  FROM united JOIN others USING (scan_id)`;
