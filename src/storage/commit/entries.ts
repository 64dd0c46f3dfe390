import { type RawBuilder, sql } from 'kysely';
import type { PageContent } from '../../sync/ports/index.js';
import { isDeleted } from '../tables/retention.js';
import { RUN_COLUMNS } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { payloadRows, quarantineParameter, received } from './commit-parameters.js';
import type { CommitSettings } from './commit-row.js';
import { CANDIDATE_COLUMNS, hasRepeatedScans, UNION, UNITED_CANDIDATES, unitedEntries } from './repeated-scans.js';
import {
  type Comparison,
  changes,
  contradiction,
  entry,
  pendingOfNew,
  restatesTestMode,
  steeringDiffers,
  storedRow,
  unionOf,
} from './union-of-sources.js';

/** The columns that an entry fills. */
const RUN = ['revision', ...RUN_COLUMNS].join(', ');
/** The columns that a new scan or a higher revision replaces. */
const REPLACED = `${RUN}, result_state, pending_reason, pending_since, next_try_at, attempts, pending_for, feed, stored_by, synced_at, change_seq`;
const EXCLUDED = REPLACED.split(', ')
  .map((name) => `excluded.${name}`)
  .join(', ');
/** The verdicts that lead to a write. */
const WRITTEN_VERDICTS = sql`('new', 'newer', 'completes', 'restates')`;

/** Columns of `candidate` that `judged` has unchanged. */
const AS_RECEIVED = ['scan_id', 'revision', ...CANDIDATE_COLUMNS, 'others_same', 'others_stale', 'others_conflicts']
  .filter((name) => !['partner_test_mode', 'test_mode_revision', 'pending'].includes(name))
  .map((name) => `candidate.${name}`)
  .join(', ');
/** For a candidate and the stored row, within `judged`. */
const COMPARED: Comparison = {
  contradicts: sql`compared.contradicts`,
  restates: sql`compared.restates`,
  inDoubt: sql`(stated.partner_test_mode AND stated.test_mode_revision < GREATEST(candidate.revision, known.revision)
        AND NOT (candidate.is_answer AND candidate.revision >= known.revision))`,
};
/** The same for a row of `judged`. */
const JUDGED: Comparison = {
  contradicts: sql`judged.contradicts`,
  restates: sql`judged.restates`,
  inDoubt: sql`judged.in_doubt`,
};

/** `counts` of a commit without entries. It has few columns: most commits of a feed at its end are of this kind. */
const NO_ENTRIES = sql`
counts AS (
  SELECT 0 AS inserted, 0 AS updated, false AS brings_new
)`;

/**
 * The entries of every commit statement, in the order in which the parts refer to each other. They are preceded by `held`, which
 * has one row with `stored_by` (for the column of `runs`) if the commit can write, else none. They end with `counts`, which has a
 * row if `held` has one, and fails the statement if an entry could not be written as judged. The rules for several sources of one
 * revision are in union-of-sources.ts.
 */
export function storedEntries(
  tables: Tables,
  { keptDays, pendingRetryMs }: CommitSettings,
  feed: string,
  { batch, quarantine }: PageContent,
): RawBuilder<unknown> {
  if (batch.length === 0 && quarantine.length === 0) return NO_ENTRIES;
  const [candidate, known] = [entry('candidate'), storedRow('known')];
  const [judged, run] = [entry('judged'), storedRow('run')];
  const { pending, ...union } = unionOf(run, judged, JUDGED);
  const unionAssignments = Object.entries(union).map(([name, value]) => sql`${sql.id(name)} = ${value}`);
  const whilePending = (value: RawBuilder<unknown>) => sql`CASE WHEN ${pending} IS NOT NULL THEN ${value} END`;
  // A result that only lacked memory is tried at once.
  const firstTryAt = sql`statement_timestamp()
      + CASE WHEN judged.pending = 'no_memory' THEN 0 ELSE ${pendingRetryMs} END * interval '1 millisecond'`;
  const isRepeated = hasRepeatedScans(batch);

  return sql`
${received(batch)},

-- The highest revision of each scan on the page. others_* counts the other entries of the scan. Most pages list each scan once.
${isRepeated ? sql`${unitedEntries(tables)},` : sql``}
candidate AS (
  SELECT scan_id, revision, ${UNION}, false AS united, 0 AS others_same, 0 AS others_stale, 0 AS others_conflicts
  FROM received ${isRepeated ? UNITED_CANDIDATES : sql``}
),

-- Each candidate with a verdict after comparison with the stored row. Entries that change nothing (same, stale) and entries of
-- deleted runs go no further, so they cost no row lock. The test mode is that of the row if no higher revision states it.
judged AS MATERIALIZED (
  SELECT ${sql.raw(AS_RECEIVED)}, stated.*, compared.*, ${COMPARED.inDoubt} AS in_doubt, deleted.scan_id IS NOT NULL AS was_deleted,
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
    COALESCE(NOT united AND candidate.revision = known.revision
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
),

-- A writer holds this lock while it draws change numbers, until it commits, so the order of numbers is the order of commits. A
-- trigger of quarantine does the same for runs that become productive, or cease to be, with the entries below.
number_lock AS MATERIALIZED (
  SELECT ${tables.lockChangeClock} AS locked
  WHERE EXISTS (SELECT FROM held) AND EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS})
),

-- Writes new scans and higher revisions, and returns which of the two each is: a replaced row keeps first_synced_at. After
-- waiting for another writer, PostgreSQL checks the revision again on the current row. Stored rows are locked in the order
-- of their scan ids, so that writers do not deadlock. New scans need no order, and sorting costs time.
stored AS (
  INSERT INTO ${tables.runs} AS run (scan_id, first_synced_at, ${sql.raw(REPLACED)})
  SELECT scan_id, statement_timestamp(), ${sql.raw(RUN)},
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END,
    pending,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END,
    CASE WHEN pending IS NOT NULL THEN ${firstTryAt} END,
    0, NULL, ${feed}, (SELECT stored_by FROM held), statement_timestamp(), ${tables.nextChange}
  FROM (
    SELECT * FROM judged WHERE verdict = 'new'
    UNION ALL
    (SELECT * FROM judged WHERE verdict = 'newer' ORDER BY scan_id)
  ) AS judged
  WHERE EXISTS (SELECT FROM number_lock) -- a join would keep a copy of all rows
  ON CONFLICT (scan_id) DO UPDATE SET (${sql.raw(REPLACED)}) = ROW (${sql.raw(EXCLUDED)})
  WHERE excluded.revision > run.revision AND NOT ${restatesTestMode(entry('excluded'), run)}
  RETURNING run.scan_id, run.first_synced_at = statement_timestamp() AS inserted
),

-- Adds values of the entry to rows whose revision is stored already, and the test mode of a lower revision to rows whose own sources
-- do not state it. Another writer may have changed the row since it was judged.
filled AS (
  UPDATE ${tables.runs} AS run SET
    ${sql.join(unionAssignments)},
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
      AND NOT ${restatesTestMode(judged, run)} AND ${changes(run, judged, JUDGED)}
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
),

-- The unusable entries, one per identity: preferably one that is not stored in any form, else the original of a stored one.
unusable AS MATERIALIZED (
  SELECT DISTINCT ON (identity) *
  FROM (
    SELECT *, state = 'open' AND (
      EXISTS (SELECT FROM judged
        WHERE judged.scan_id = sent.scan_id AND judged.revision >= sent.revision AND judged.verdict <> 'deleted')
      OR EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = sent.scan_id AND run.revision >= sent.revision)
    ) AS superseded
    FROM jsonb_to_recordset(${quarantineParameter(quarantine)}::jsonb) AS sent (
      position integer, identity text, scan_id text, revision integer, reason text, detail text, state text
    )
    WHERE NOT EXISTS (SELECT FROM ${tables.deletedRuns} AS deleted
      WHERE deleted.scan_id = sent.scan_id AND ${isDeleted(sql`sent`)})
  ) AS sent
  ORDER BY identity, superseded, state
),

-- Stores each identity once. An entry whose revision, or a higher one, is stored is not open.
quarantined AS (
  INSERT INTO ${tables.quarantine} AS known (feed, identity, scan_id, revision, reason, detail, payload, state)
  SELECT ${feed}, identity, scan_id, revision, reason, detail, sent.payload,
    CASE WHEN superseded THEN 'discarded' ELSE state END
  FROM unusable JOIN ${payloadRows(quarantine)} AS sent (position, payload) USING (position)
  WHERE EXISTS (SELECT FROM held)
  ON CONFLICT (feed, identity) DO UPDATE SET
    last_seen_at = clock_timestamp(),
    times_seen = known.times_seen + 1,
    -- The open entry is now stored after a repair: keep this original.
    (reason, detail, payload) = ROW (
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.reason ELSE known.reason END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.detail ELSE known.detail END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.payload ELSE known.payload END),
    state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END
  RETURNING state, times_seen = 1 AS is_new
),

-- Closes open entries of earlier pages whose run is now stored.
closed AS (
  UPDATE ${tables.quarantine} AS open SET
    state = CASE WHEN open.revision = judged.revision THEN 'replayed' ELSE 'discarded' END
  FROM judged
  WHERE EXISTS (SELECT FROM held) AND open.state = 'open' AND open.feed = ${feed}
    AND open.scan_id = judged.scan_id AND open.revision <= judged.revision AND judged.verdict <> 'deleted'
    AND open.identity NOT IN (SELECT identity FROM unusable)
),

-- The last column fails the statement.
counts AS MATERIALIZED (
  SELECT
    (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
    (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
    (SELECT count(*)::int FROM filled) AS filled,
    judged_counts.same AS unchanged, judged_counts.stale, judged_counts.conflicts,
    (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
    (SELECT json_agg(scan_id) FROM stored) AS stored,
    EXISTS (SELECT FROM stored) OR EXISTS (SELECT FROM filled)
      OR EXISTS (SELECT FROM quarantined WHERE is_new AND state <> 'repaired') AS brings_new,
    CASE WHEN EXISTS (SELECT FROM overtaken) THEN ${tables.refuseOvertaken} END AS refused
  FROM held CROSS JOIN (
    SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
      COALESCE(sum((verdict IN ('stale', 'deleted'))::int + others_stale), 0)::int AS stale,
      COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
    FROM judged
  ) AS judged_counts
)`;
}
