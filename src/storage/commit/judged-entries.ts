import { type RawBuilder, sql } from 'kysely';
import type { EntryBatch } from '../../sync/ports/index.js';
import { isDeleted } from '../tables/retention.js';
import { CONTENT_COLUMNS, columnList } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { candidates } from './repeated-scans.js';
import {
  type Comparison,
  changes,
  contradiction,
  entry,
  pendingOfNew,
  restatesTestMode,
  steeringDiffers,
  storedRow,
} from './union-of-sources.js';

/** Columns of `judged` that are those of the candidate. The test mode and `pending` depend on the stored row as well. */
const UNCHANGED_COLUMNS = ['scan_id', 'revision', ...CONTENT_COLUMNS, 'is_answer'] as const;
/** The candidate compared with the stored row, within `judged`. */
const COMPARED: Comparison = {
  contradicts: sql`compared.contradicts`,
  restates: sql`compared.restates`,
  inDoubt: sql`(stated.partner_test_mode AND stated.test_mode_revision < GREATEST(candidate.revision, known.revision)
        AND NOT (candidate.is_answer AND candidate.revision >= known.revision))`,
};

/**
 * The parts of the commit that compare its entries with the stored rows. They need `received`. They give `judged`: a row for each scan
 * of the page, with a verdict and the values to write. An entry that `completes` adds something to the row of its revision; an entry that
 * `restates` adds only its test mode, to a row of a higher revision. `same`, `stale` and `deleted` change nothing and cost no row lock.
 */
export function judgedEntries(tables: Tables, keptDays: number | null, batch: EntryBatch): RawBuilder<unknown> {
  const [candidate, known] = [entry('candidate'), storedRow('known')];
  return sql`${candidates(tables, batch)},

-- Each candidate with a verdict after comparison with the stored row. The test mode is that of the row if no higher revision states it.
judged AS MATERIALIZED (
  SELECT ${columnList(UNCHANGED_COLUMNS, 'candidate')},
    candidate.others_same, candidate.others_stale, candidate.others_conflicts,
    stated.*, compared.*, ${COMPARED.inDoubt} AS in_doubt, deleted.scan_id IS NOT NULL AS was_deleted,
    CASE WHEN candidate.revision = known.revision THEN candidate.pending
      ELSE ${pendingOfNew(candidate, COMPARED.inDoubt)} END AS pending,
    CASE
      WHEN candidate.revision < known.revision AND compared.restates THEN 'restates'
      WHEN ${isDeleted(sql`candidate`, keptDays)} THEN 'deleted'
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN ${changes(known, candidate, COMPARED)} THEN 'completes'
      ELSE 'same'
    END AS verdict,
    -- Entries that were united with the stored row were compared with it already.
    COALESCE(NOT candidate.united AND candidate.revision = known.revision
      AND (compared.contradicts OR ${steeringDiffers(known, candidate)}), false) AS conflicting
  FROM candidate
  -- LIMIT makes PostgreSQL look up each scan by the index, also with a plan that was made when the tables were empty.
  LEFT JOIN LATERAL (
    SELECT * FROM ${tables.runs} AS run WHERE run.scan_id = candidate.scan_id LIMIT 1
  ) AS known ON true
  LEFT JOIN LATERAL (
    SELECT * FROM ${tables.deletedRuns} AS run WHERE run.scan_id = candidate.scan_id LIMIT 1
  ) AS deleted ON true
  -- OFFSET 0 makes PostgreSQL compare the contents only once.
  CROSS JOIN LATERAL (
    SELECT candidate.revision < known.revision
        OR candidate.revision = known.revision AND ${contradiction(known, candidate)} AS contradicts,
      ${restatesTestMode(known, candidate)} AS restates
    OFFSET 0
  ) AS compared
  CROSS JOIN LATERAL ( -- no run is both stored and deleted
    SELECT CASE WHEN compared.restates THEN candidate.partner_test_mode
        ELSE COALESCE(known.partner_test_mode, deleted.test_mode_revision IS NOT NULL) END AS partner_test_mode,
      GREATEST(candidate.test_mode_revision, known.test_mode_revision, deleted.test_mode_revision) AS test_mode_revision
  ) AS stated
)`;
}
