import { type RawBuilder, sql } from 'kysely';
import type { EntryBatch } from '../../sync/ports/index.js';
import { CONTENT_COLUMNS, columnList, RUN_COLUMNS } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { ENTRY_COLUMNS } from './received-entries.js';
import { contradiction, entry, restatesTestMode, steeringDiffers, unionOf } from './union-of-sources.js';

/** The parts of the commit that give `candidate`: the highest revision of each scan in `received`. Most pages list each scan once. */
export function candidates(tables: Tables, batch: EntryBatch): RawBuilder<unknown> {
  const isRepeated = new Set(batch.map(({ run }) => run.scanId)).size < batch.length;
  return isRepeated ? unitedCandidates(tables) : sql`candidate AS (\n  ${EACH_ENTRY}\n)`;
}

/** The entries of a repeated scan that have its highest revision become one candidate, in order, as if each had its own page. */
function unitedCandidates(tables: Tables) {
  const [united, next] = [entry('united'), entry('next')];
  const union = unionOf(united, next, {
    contradicts: sql`compared.contradicts`,
    restates: restatesTestMode(united, next),
    inDoubt: sql`false`, // this is decided with the stored row
  });
  const values = RUN_COLUMNS.map((name) => union[name]);
  return sql`-- The scans that the page lists more than once, with their highest revision.
repeated AS MATERIALIZED (
  SELECT scan_id, max(revision) AS revision FROM received GROUP BY scan_id HAVING count(*) > 1
),

-- The sources to unite, numbered in their order. Without values, so that sorting is cheap. If the stored row has the same revision, it
-- is the first.
source AS MATERIALIZED (
  SELECT *, row_number() OVER (PARTITION BY scan_id ORDER BY position) AS number, count(*) OVER (PARTITION BY scan_id) AS sources
  FROM (
    SELECT scan_id, position FROM received JOIN repeated USING (scan_id, revision)
    UNION ALL
    SELECT scan_id, 0 FROM ${tables.runs} AS run JOIN repeated USING (scan_id, revision)
  ) AS unnumbered
),

-- Counts the entries of a scan that are not its candidate, with the test mode that all entries state, of any revision.
others AS MATERIALIZED (
  SELECT scan_id,
    GREATEST(count(*) FILTER (WHERE received.revision = repeated.revision AND NOT is_answer)::int - 1, 0) AS others_same,
    count(*) FILTER (WHERE received.revision < repeated.revision AND NOT is_answer)::int AS others_stale,
    max(ARRAY[test_mode_revision, partner_test_mode::int]) FILTER (WHERE test_mode_revision IS NOT NULL) AS test_mode
  FROM received JOIN repeated USING (scan_id) GROUP BY scan_id
),

-- Adds one source after another to their union.
united AS MATERIALIZED (
  WITH RECURSIVE united AS (
    SELECT scan_id, received.revision, ${columnList(RUN_COLUMNS)}, pending, is_answer, 0 AS others_conflicts, number, sources
    FROM source JOIN received USING (scan_id, position) WHERE source.number = 1
    UNION ALL
    SELECT scan_id, run.revision, ${columnList(RUN_COLUMNS)}, pending_reason, false, 0, source.number, source.sources
    FROM source JOIN ${tables.runs} AS run USING (scan_id) WHERE source.position = 0
    UNION ALL
    SELECT united.scan_id, united.revision, ${sql.join(values, sql`,\n      `)},
      ${union.pending}, united.is_answer OR next.is_answer,
      united.others_conflicts + (compared.contradicts OR ${steeringDiffers(united, next)})::int,
      source.number, united.sources
    FROM united
    JOIN source ON source.scan_id = united.scan_id AND source.number = united.number + 1
    JOIN received AS next ON next.position = source.position
    CROSS JOIN LATERAL (SELECT ${contradiction(united, next)} AS contradicts OFFSET 0) AS compared
  )
  SELECT * FROM united WHERE number = sources
),

-- The candidate of each scan. others_* counts its other entries.
candidate AS (
  ${EACH_ENTRY} WHERE scan_id NOT IN (SELECT scan_id FROM repeated)
  UNION ALL
  SELECT scan_id, revision, ${columnList(CONTENT_COLUMNS)},
    COALESCE(test_mode[2] = 1, false), test_mode[1], pending, is_answer,
    true, others_same, others_stale, others_conflicts
  FROM united JOIN others USING (scan_id)
)`;
}

/** Each entry as a candidate. */
const EACH_ENTRY = sql`SELECT ${columnList(ENTRY_COLUMNS)},
    false AS united, 0 AS others_same, 0 AS others_stale, 0 AS others_conflicts
  FROM received`;
