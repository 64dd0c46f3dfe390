import { type RawBuilder, sql } from 'kysely';
import type { CommitCounts } from '../../core/counts.js';
import type { EntryBatch, LeaseGrant, QuarantineEntry } from '../../sync/ports/index.js';
import { DATABASE_MS } from '../connection/database-clock.js';
import { isDeleted } from '../runs/deleted-runs.js';
import { RUN_COLUMNS } from '../schema/run-columns.js';
import type { Tables } from '../schema/schema.js';
import { payloadRows, quarantineParameter } from './commit-parameters.js';
import type { CommitSettings } from './commit-settings.js';
import type { FenceRow } from './fence.js';
import { candidates, received } from './page-entries.js';
import { changes, contradiction, entry, steeringDiffers, storedRow, unionOf } from './union-of-sources.js';

/*
 * The commit statement. Its parts are listed in an order in which each refers only to earlier ones. The fence, with
 * the new position, comes first (fence.ts, position.ts, passes.ts). `received` and `candidate` turn a page into one entry per
 * scan (page-entries.ts).
 */

export interface CommitInput {
  readonly lease: LeaseGrant;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  /**
   * Returns the start of the statement: `WITH fence AS …`, and the parts that move a position. Nothing is written if the fence
   * returns no row.
   * @param now monotonic milliseconds, read right before the statement is sent
   */
  readonly fence: (now: number) => RawBuilder<unknown>;
  /** Last parts of the statement, `, … AS (…)`: they depend on the rows it wrote, as the position of a pass does. */
  readonly notes?: RawBuilder<unknown>;
}

export interface FenceAnswer extends FenceRow {
  database_ms: number;
}

interface CommitAnswer extends FenceAnswer, Omit<CommitCounts, 'stored'> {
  stored: string[] | null;
}

/** @param now monotonic milliseconds, read right before the statement is sent */
export function commitStatement(
  tables: Tables,
  settings: CommitSettings,
  { lease, batch, quarantine, fence, notes = sql`` }: CommitInput,
  now: number,
): RawBuilder<CommitAnswer> {
  return sql<CommitAnswer>`
${fence(now)},
${received(batch)},
${candidates(tables, batch)},
${judged(tables, settings)},
${clock(tables)},
${stored(tables, lease, settings)},
${filled(tables, lease, settings)},
${overtaken()},
${bad(tables, quarantine)},
${quarantined(tables, lease, quarantine)},
${settled(tables, lease)}${notes}
${counts(tables)}`;
}

/** Verdicts that lead to a write. */
const WRITTEN_VERDICTS = sql`('new', 'newer', 'completes')`;

/**
 * `judged`: each candidate with a verdict after comparison with the stored row. Entries that change nothing (`same`, `stale`) and
 * entries of deleted runs (`deleted`) go no further, so they cost no row lock.
 */
function judged(tables: Tables, { keptDays }: CommitSettings): RawBuilder<unknown> {
  const [candidate, known] = [entry('candidate'), storedRow('known')];
  return sql`
judged AS MATERIALIZED (
  SELECT candidate.*, compared.contradicts,
    CASE
      WHEN ${isDeleted(sql`candidate`, keptDays)} THEN 'deleted'
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN ${changes(known, candidate, sql`compared.contradicts`)} THEN 'completes'
      ELSE 'same'
    END AS verdict,
    -- Entries that were united with the stored row were compared with it already.
    COALESCE(NOT united AND candidate.revision = known.revision
      AND (compared.contradicts OR ${steeringDiffers(known, candidate)}), false) AS conflicting
  FROM candidate
  LEFT JOIN ${tables.runs} AS known ON known.scan_id = candidate.scan_id
  LEFT JOIN ${tables.deletedRuns} AS deleted ON deleted.scan_id = candidate.scan_id
  -- OFFSET 0 makes PostgreSQL compare the contents only once.
  CROSS JOIN LATERAL (
    SELECT candidate.revision = known.revision AND ${contradiction(known, candidate)} AS contradicts OFFSET 0
  ) AS compared
)`;
}

/** `clock`: a writer locks this row before it draws numbers, until it commits, so the order of numbers is the order of commits. */
function clock(tables: Tables): RawBuilder<unknown> {
  return sql`
clock AS MATERIALIZED (
  SELECT FROM ${tables.changeClock}
  WHERE EXISTS (SELECT FROM fence) AND EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS})
  FOR UPDATE
)`;
}

const RUN = ['revision', ...RUN_COLUMNS].join(', ');
/** The columns that a new scan or a higher revision replaces. */
const REPLACED = `${RUN}, result_state, pending_reason, pending_since, next_try_at, attempts, feed, synced_at, change_seq`;
const EXCLUDED = REPLACED.split(', ')
  .map((name) => `excluded.${name}`)
  .join(', ');

/**
 * `stored`: writes new scans and higher revisions, and returns which of the two each is. After waiting for another writer,
 * PostgreSQL checks the revision again on the current row. Stored rows are locked in the order of their scan ids, so that writers
 * do not deadlock. New scans need no order, and sorting costs time.
 */
function stored(tables: Tables, lease: LeaseGrant, { pendingRetryMs }: CommitSettings): RawBuilder<unknown> {
  return sql`
stored AS (
  INSERT INTO ${tables.runs} AS run (scan_id, first_synced_at, ${sql.raw(REPLACED)})
  SELECT scan_id, statement_timestamp(), ${sql.raw(RUN)},
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END,
    pending,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END,
    CASE WHEN pending IS NOT NULL THEN ${firstTryAt(sql`pending`, pendingRetryMs)} END,
    0, ${lease.feed}, statement_timestamp(), ${tables.nextChange}
  FROM (
    SELECT * FROM judged WHERE verdict = 'new'
    UNION ALL
    (SELECT * FROM judged WHERE verdict = 'newer' ORDER BY scan_id)
  ) AS judged
  WHERE EXISTS (SELECT FROM clock) -- a join would keep a copy of all rows
  ON CONFLICT (scan_id) DO UPDATE SET (${sql.raw(REPLACED)}) = ROW (${sql.raw(EXCLUDED)})
  WHERE excluded.revision > run.revision
  RETURNING run.scan_id, run.xmax = 0 AS inserted
)`;
}

/** `filled`: adds values of the entry to rows whose revision is stored already. */
function filled(tables: Tables, lease: LeaseGrant, { pendingRetryMs }: CommitSettings): RawBuilder<unknown> {
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

/** Returns the time of the first retry: at once if the result only lacked memory. */
function firstTryAt(pending: RawBuilder<unknown>, pendingRetryMs: number): RawBuilder<unknown> {
  return sql`statement_timestamp() + CASE WHEN ${pending} = 'no_memory' THEN 0 ELSE ${pendingRetryMs} END * interval '1 millisecond'`;
}

/** `overtaken`: entries that could not be written as judged because another writer has changed their row since. */
function overtaken(): RawBuilder<unknown> {
  return sql`
overtaken AS MATERIALIZED (
  SELECT scan_id FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}
    AND scan_id NOT IN (SELECT scan_id FROM stored UNION ALL SELECT scan_id FROM filled)
)`;
}

/** `bad`: the unusable entries, one per identity: preferably one that is not stored in any form, else the original of a stored one. */
function bad(tables: Tables, entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  return sql`
bad AS MATERIALIZED (
  SELECT DISTINCT ON (identity) *
  FROM (
    SELECT *, state = 'open' AND (
      EXISTS (SELECT FROM judged
        WHERE judged.scan_id = bad.scan_id AND judged.revision >= bad.revision AND judged.verdict <> 'deleted')
      OR EXISTS (SELECT FROM ${tables.runs} AS run WHERE run.scan_id = bad.scan_id AND run.revision >= bad.revision)
    ) AS overtaken
    FROM jsonb_to_recordset(${quarantineParameter(entries)}::jsonb) AS bad (
      position integer, identity text, scan_id text, revision integer, reason text, detail text, state text
    )
    WHERE NOT EXISTS (SELECT FROM ${tables.deletedRuns} AS deleted
      WHERE deleted.scan_id = bad.scan_id AND ${isDeleted(sql`bad`)})
  ) AS bad
  ORDER BY identity, overtaken, state
)`;
}

/** `quarantined`: stores each identity once. An entry whose revision, or a higher one, is stored is not open. */
function quarantined(tables: Tables, lease: LeaseGrant, entries: readonly QuarantineEntry[]): RawBuilder<unknown> {
  return sql`
quarantined AS (
  INSERT INTO ${tables.quarantine} AS known (feed, identity, scan_id, revision, reason, detail, payload, state)
  SELECT ${lease.feed}, identity, scan_id, revision, reason, detail, sent.payload,
    CASE WHEN overtaken THEN 'discarded' ELSE state END
  FROM bad JOIN ${payloadRows(entries)} AS sent (position, payload) USING (position)
  WHERE EXISTS (SELECT FROM fence)
  ON CONFLICT (feed, identity) DO UPDATE SET
    last_seen_at = clock_timestamp(),
    times_seen = known.times_seen + 1,
    -- The open entry is now stored after a repair: keep this original.
    (reason, detail, payload) = ROW (
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.reason ELSE known.reason END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.detail ELSE known.detail END,
      CASE WHEN known.state = 'open' AND excluded.state = 'repaired' THEN excluded.payload ELSE known.payload END),
    state = CASE WHEN known.state = 'open' THEN excluded.state ELSE known.state END
  RETURNING state
)`;
}

/** `settled`: closes open entries of earlier pages whose run is now stored. */
function settled(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
settled AS (
  UPDATE ${tables.quarantine} AS open SET
    state = CASE WHEN open.revision = judged.revision THEN 'replayed' ELSE 'discarded' END
  FROM judged
  WHERE EXISTS (SELECT FROM fence) AND open.state = 'open' AND open.feed = ${lease.feed}
    AND open.scan_id = judged.scan_id AND open.revision <= judged.revision AND judged.verdict <> 'deleted'
    AND open.identity NOT IN (SELECT identity FROM bad)
)`;
}

/** Returns the final select: one row if the fence holds. If an entry could not be written as judged, the whole statement fails. */
function counts(tables: Tables): RawBuilder<unknown> {
  return sql`
SELECT fence.*, ${DATABASE_MS},
  (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
  (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
  (SELECT count(*)::int FROM filled) AS filled,
  judged_counts.same AS unchanged, judged_counts.stale, judged_counts.conflicts,
  (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
  (SELECT json_agg(scan_id) FROM stored) AS stored,
  CASE
    WHEN EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}) AND NOT EXISTS (SELECT FROM clock)
      THEN ${tables.refuseMissingClock}
    WHEN EXISTS (SELECT FROM overtaken) THEN ${tables.refuseOvertaken}
  END
FROM fence CROSS JOIN (
  SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
    COALESCE(sum((verdict IN ('stale', 'deleted'))::int + others_stale), 0)::int AS stale,
    COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
  FROM judged
) AS judged_counts`;
}
