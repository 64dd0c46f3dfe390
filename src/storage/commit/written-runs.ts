import { type RawBuilder, sql } from 'kysely';
import { columnList, RUN_COLUMNS } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { changes, contradiction, entry, restatesTestMode, storedRow, unionOf } from './union-of-sources.js';

/** Columns with the values of the entry. */
const VALUE_COLUMNS = ['revision', ...RUN_COLUMNS] as const;
/** Columns that say whether the result is pending, and when it is tried again. */
const PENDING_COLUMNS = ['result_state', 'pending_reason', 'pending_since', 'next_try_at', 'attempts', 'pending_for'];
/** The columns that a new scan or a higher revision replaces: all but `scan_id` and `first_synced_at`. */
const REPLACED_COLUMNS = [...VALUE_COLUMNS, ...PENDING_COLUMNS, 'feed', 'stored_by', 'synced_at', 'change_seq'];
/** The verdicts that lead to a write. */
const WRITTEN_VERDICTS = sql`('new', 'newer', 'completes', 'restates')`;

/**
 * The parts of the commit that write `runs`. They need `held` and `judged`. They give `stored` (new scans and higher revisions),
 * `filled` (rows that an entry added something to) and `overtaken`, whose rows must fail the statement.
 */
export function writtenRuns(tables: Tables, feed: string, pendingRetryMs: number): RawBuilder<unknown> {
  const [judged, run] = [entry('judged'), storedRow('run')];
  const comparison = { contradicts: judged('contradicts'), restates: judged('restates'), inDoubt: judged('in_doubt') };
  const { pending, ...union } = unionOf(run, judged, comparison);
  const unionAssignments = Object.entries(union).map(([name, value]) => sql`${sql.id(name)} = ${value}`);
  const whilePending = (value: RawBuilder<unknown>) => sql`CASE WHEN ${pending} IS NOT NULL THEN ${value} END`;
  // A result that only lacked memory is tried at once.
  const firstTryAt = sql`statement_timestamp()
      + CASE WHEN judged.pending = 'no_memory' THEN 0 ELSE ${pendingRetryMs} END * interval '1 millisecond'`;

  return sql`-- A writer holds this lock while it draws change numbers, until it commits, so the order of numbers is the order of commits. A
-- trigger of quarantine does the same for runs that become productive, or cease to be, with the entries below.
number_lock AS MATERIALIZED (
  SELECT ${tables.lockChangeClock} AS locked
  WHERE EXISTS (SELECT FROM held) AND EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS})
),

-- Writes new scans and higher revisions, and returns which of the two each is: a replaced row keeps first_synced_at. After
-- waiting for another writer, PostgreSQL checks the revision again on the current row. Stored rows are locked in the order
-- of their scan ids, so that writers do not deadlock. New scans need no order, and sorting costs time.
stored AS (
  INSERT INTO ${tables.runs} AS run (scan_id, first_synced_at, ${columnList(REPLACED_COLUMNS)})
  SELECT scan_id, statement_timestamp() AS first_synced_at, ${columnList(VALUE_COLUMNS)},
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END AS result_state,
    pending AS pending_reason,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END AS pending_since,
    CASE WHEN pending IS NOT NULL THEN ${firstTryAt} END AS next_try_at,
    0 AS attempts, NULL AS pending_for,
    ${feed} AS feed, (SELECT stored_by FROM held), statement_timestamp() AS synced_at, ${tables.nextChange} AS change_seq
  FROM (
    SELECT * FROM judged WHERE verdict = 'new'
    UNION ALL
    (SELECT * FROM judged WHERE verdict = 'newer' ORDER BY scan_id)
  ) AS judged
  WHERE EXISTS (SELECT FROM number_lock) -- a join would keep a copy of all rows
  ON CONFLICT (scan_id) DO UPDATE SET
    (${columnList(REPLACED_COLUMNS)})
    = ROW (${columnList(REPLACED_COLUMNS, 'excluded')})
  WHERE excluded.revision > run.revision AND NOT ${restatesTestMode(entry('excluded'), run)}
  RETURNING run.scan_id, run.first_synced_at = statement_timestamp() AS inserted
),

-- Adds values of the entry to rows whose revision is stored already, and the test mode of a lower revision to rows whose own sources
-- do not state it. Another writer may have changed the row since it was judged.
filled AS (
  UPDATE ${tables.runs} AS run SET
    ${sql.join(unionAssignments, sql`,\n    `)},
    result_state = CASE WHEN ${pending} IS NULL THEN 'complete' ELSE 'pending' END,
    pending_reason = ${pending},
    pending_since = ${whilePending(sql`COALESCE(run.pending_since, statement_timestamp())`)},
    next_try_at = ${whilePending(sql`COALESCE(run.next_try_at, ${firstTryAt})`)},
    attempts = COALESCE(${whilePending(sql`run.attempts`)}, 0),
    pending_for = CASE WHEN ${pending} IS NULL THEN COALESCE(statement_timestamp() - run.pending_since, run.pending_for) END,
    feed = CASE WHEN judged.verdict = 'completes' THEN ${feed} ELSE run.feed END,
    synced_at = statement_timestamp(),
    change_seq = ${tables.nextChange}
  FROM number_lock CROSS JOIN judged
  WHERE judged.verdict IN ('completes', 'restates') AND run.scan_id = judged.scan_id AND CASE judged.verdict
    WHEN 'completes' THEN run.revision = judged.revision AND ${contradiction(run, judged)} = judged.contradicts
      AND NOT ${restatesTestMode(judged, run)} AND ${changes(run, judged, comparison)}
    ELSE run.revision > judged.revision AND ${restatesTestMode(run, judged)} END
  RETURNING run.scan_id
),

-- Entries that could not be written as judged because another writer has changed or deleted their row since. They fail the
-- statement.
overtaken AS MATERIALIZED (
  SELECT scan_id FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}
    AND scan_id NOT IN (SELECT scan_id FROM stored UNION ALL SELECT scan_id FROM filled)
  UNION ALL
  SELECT scan_id FROM judged WHERE verdict = 'newer' AND scan_id IN (SELECT scan_id FROM stored WHERE inserted)
),

-- Expired runs of which a later revision is now stored are no longer deleted.
restored AS (
  DELETE FROM ${tables.deletedRuns} AS deleted USING judged
  WHERE EXISTS (SELECT FROM number_lock) AND judged.verdict = 'new' AND judged.was_deleted
    AND deleted.scan_id = judged.scan_id
)`;
}
