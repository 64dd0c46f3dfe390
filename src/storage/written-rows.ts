import { type RawBuilder, sql } from 'kysely';
import type { LeaseGrant } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { WRITTEN_VERDICTS } from './judged-entries.js';
import type { Tables } from './schema.js';
import { contradiction, entry, storedRow, unionOf } from './union-of-sources.js';

/** Part of the commit statement, after `fence` and `judged`: the rows that it writes, in `stored` and `filled`. */
export function writtenRows(tables: Tables, lease: LeaseGrant, settings: CommitSettings): RawBuilder<unknown> {
  return sql`
-- A writer that draws numbers holds the clock until it commits: the order of numbers is the order of commits.
clock AS MATERIALIZED (
  SELECT FROM ${tables.changeClock}
  WHERE EXISTS (SELECT FROM fence) AND EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS})
  FOR UPDATE
),
${storedRows(tables, lease, settings)},
${filledRows(tables, lease, settings)}`;
}

const COLUMNS = sql.raw(`revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
  partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at, markdown,
  markdown_absent, repaired, extra`);

/**
 * `stored`: new scans and higher revisions, and which of the two. PostgreSQL checks the revision again on the row as it is
 * after waiting for another writer. Stored rows are locked in the order of their scans, so that writers do not deadlock;
 * new scans need no order, and sorting costs time.
 */
function storedRows(tables: Tables, lease: LeaseGrant, { pendingRetryMs }: CommitSettings): RawBuilder<unknown> {
  return sql`
stored AS (
  INSERT INTO ${tables.runs} AS run (scan_id, ${COLUMNS}, result_state, pending_reason, pending_since, next_try_at,
    attempts, feed, first_synced_at, synced_at, change_seq)
  SELECT scan_id, ${COLUMNS},
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END,
    pending,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END,
    CASE WHEN pending IS NOT NULL THEN ${firstTryAt(sql`pending`, pendingRetryMs)} END,
    0, ${lease.feed}, statement_timestamp(), statement_timestamp(), ${tables.nextChange}
  FROM (
    SELECT * FROM judged WHERE verdict = 'new'
    UNION ALL
    (SELECT * FROM judged WHERE verdict = 'newer' ORDER BY scan_id)
  ) AS judged
  WHERE EXISTS (SELECT FROM clock) -- not joined with it: that would keep a copy of all rows
  ON CONFLICT (scan_id) DO UPDATE SET
    (${COLUMNS}, result_state, pending_reason, pending_since, next_try_at, attempts, feed, synced_at, change_seq) = ROW (
      excluded.revision, excluded.status, excluded.environment, excluded.document_type_slug,
      excluded.document_type_name, excluded.file_name, excluded.partner_name, excluded.partner_test_mode,
      excluded.ocr_confidence, excluded.data, excluded.failure_reason, excluded.error, excluded.submitted_at,
      excluded.completed_at, excluded.delivered_at, excluded.markdown, excluded.markdown_absent, excluded.repaired,
      excluded.extra, excluded.result_state, excluded.pending_reason, excluded.pending_since, excluded.next_try_at,
      excluded.attempts, excluded.feed, excluded.synced_at, excluded.change_seq)
  WHERE excluded.revision > run.revision
  RETURNING run.scan_id, run.xmax = 0 AS inserted
)`;
}

/** `filled`: rows whose revision is stored already, with what the entry adds to them. */
function filledRows(tables: Tables, lease: LeaseGrant, { pendingRetryMs }: CommitSettings): RawBuilder<unknown> {
  const [run, judged] = [storedRow('run'), entry('judged')];
  const { pending, ...union } = unionOf(run, judged, sql`judged.contradicts`);
  const assignments = Object.entries(union).map(([name, value]) => sql`${sql.id(name)} = ${value}`);
  const whilePending = (value: RawBuilder<unknown>) => sql`CASE WHEN ${pending} IS NOT NULL THEN ${value} END`;
  return sql`
filled AS (
  UPDATE ${tables.runs} AS run SET
    ${sql.join(assignments)},
    result_state = CASE WHEN ${pending} IS NULL THEN 'complete' ELSE 'pending' END,
    pending_reason = ${pending},
    pending_since = ${whilePending(sql`COALESCE(run.pending_since, statement_timestamp())`)},
    next_try_at = ${whilePending(sql`COALESCE(run.next_try_at, ${firstTryAt(sql`judged.pending`, pendingRetryMs)})`)},
    attempts = COALESCE(${whilePending(sql`run.attempts`)}, 0),
    feed = ${lease.feed},
    synced_at = statement_timestamp(),
    change_seq = ${tables.nextChange}
  FROM clock CROSS JOIN judged
  WHERE judged.verdict = 'completes' AND run.scan_id = judged.scan_id AND run.revision = judged.revision
    -- Another writer may have changed the row since it was judged.
    AND ${contradiction(run, judged)} = judged.contradicts
  RETURNING run.scan_id
)`;
}

/** At once where there was only no memory for the result. */
function firstTryAt(pending: RawBuilder<unknown>, pendingRetryMs: number): RawBuilder<unknown> {
  return sql`statement_timestamp() + CASE WHEN ${pending} = 'no_memory' THEN 0 ELSE ${pendingRetryMs} END * interval '1 millisecond'`;
}
