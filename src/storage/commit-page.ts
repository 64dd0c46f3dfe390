import { type Kysely, type RawBuilder, sql } from 'kysely';
import type {
  CommitCounts,
  CommitOutcome,
  EntryBatch,
  LeaseGrant,
  PageCommit,
  QuarantineEntry,
  SweepCommit,
} from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { type FenceRow, fenceOnEpoch, fenceOnPosition } from './fence.js';
import { checkpointRows } from './position.js';
import { quarantineRows } from './quarantine.js';
import { receivedEntries } from './received-entries.js';
import type { Tables } from './schema.js';
import { sweepPosition } from './sweeps.js';

/**
 * Commits a page: fence, rows, history, quarantine and cursor in one statement, so that no error in between can be
 * swallowed and an unknown outcome leaves either all or nothing. `fenced` when the epoch or the cursor has changed.
 */
export async function commitPage(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: PageCommit,
): Promise<CommitOutcome> {
  const fence = fenceOnPosition(tables, commit, settings);
  const checkpoint = checkpointRows(tables, commit.lease.feed, commit.from, commit.to);
  if (commit.batch.entries.length === 0 && commit.quarantine.length === 0) {
    const { rows } = await sql<FenceRow>`
WITH fence AS MATERIALIZED (${fence}),
${checkpoint}
SELECT * FROM fence`.execute(db);
    return outcomeOf(rows[0], NOTHING, settings);
  }
  return write(db, tables, settings, sql`WITH fence AS MATERIALIZED (${fence}), ${checkpoint}`, commit);
}

/** Stores results loaded later, without moving the cursor; `fenced` when the lease was lost. */
export async function commitResults(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  batch: EntryBatch,
  quarantine: readonly QuarantineEntry[] = [],
): Promise<CommitOutcome> {
  const fence = sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)})`;
  return write(db, tables, settings, fence, { lease, batch, quarantine });
}

/** Stores a page of a sweep with the sweep's own position; `fenced` when the lease was lost. */
export async function commitSweep(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  { lease, kind, to, batch, quarantine, finished }: SweepCommit,
): Promise<CommitOutcome> {
  const fence = sql`
WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)}),
${sweepPosition(tables, lease, kind, to, finished)}`;
  return write(db, tables, settings, fence, { lease, batch, quarantine });
}

const NOTHING: CommitCounts = {
  inserted: 0,
  updated: 0,
  unchanged: 0,
  stale: 0,
  quarantined: 0,
  conflicts: 0,
  stored: [],
};

interface Counted extends FenceRow {
  inserted: number;
  updated: number;
  unchanged: number;
  stale: number;
  quarantined: number;
  conflicts: number;
  stored: string[] | null;
}

async function write(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  fenced: RawBuilder<unknown>,
  { lease, batch, quarantine }: Pick<PageCommit, 'lease' | 'batch' | 'quarantine'>,
): Promise<CommitOutcome> {
  const { rows } = await sql<Counted>`
${fenced},
${receivedEntries(batch)},
${judgedEntries(tables)},
-- Whoever draws numbers holds the clock until it commits: the order of numbers is the order of commits.
clock AS MATERIALIZED (
  SELECT FROM ${tables.changeClock}
  WHERE EXISTS (SELECT FROM fence) AND EXISTS (SELECT FROM judged WHERE verdict IN ('new', 'newer', 'fuller'))
  FOR UPDATE
),
${storedRows(tables, lease, settings)},
${filledRows(tables, lease)},
${quarantineRows(tables, lease, quarantine)}
SELECT fence.*,
  (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
  (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
  (SELECT count(*)::int FROM judged WHERE verdict = 'same') + duplicate.same AS unchanged,
  -- The last term: rows that another writer raised between this statement's snapshot and its turn.
  (SELECT count(*)::int FROM judged WHERE verdict = 'stale') + duplicate.stale
    + (SELECT count(*)::int FROM judged WHERE verdict IN ('new', 'newer', 'fuller'))
    - (SELECT count(*)::int FROM stored) - (SELECT count(*)::int FROM filled) AS stale,
  (SELECT count(*)::int FROM judged WHERE conflicting) + duplicate.conflicts AS conflicts,
  (SELECT count(*)::int FROM quarantined) AS quarantined,
  (SELECT array_agg(scan_id) FROM (SELECT scan_id FROM stored UNION ALL SELECT scan_id FROM filled) AS written) AS stored
FROM fence CROSS JOIN duplicate`.execute(db);
  return outcomeOf(rows[0], rows[0] && { ...rows[0], stored: rows[0].stored ?? [] }, settings);
}

function outcomeOf(
  fence: FenceRow | undefined,
  counted: CommitCounts | undefined,
  settings: CommitSettings,
): CommitOutcome {
  if (fence === undefined || counted === undefined) return { kind: 'fenced' };
  const { inserted, updated, unchanged, stale, quarantined, conflicts, stored } = counted;
  return {
    kind: 'committed',
    counts: { inserted, updated, unchanged, stale, quarantined, conflicts, stored },
    asOf: { readAt: settings.monotonic(), dataCompleteAsOf: fence.data_complete_as_of, lagMs: fence.lag_ms },
  };
}

/**
 * `judged`: of each scan on the page its highest revision, the fullest of equals, with a verdict against what is stored.
 * Entries that change nothing end here, so that they cost not even a row lock. `duplicate`: the others of the page.
 */
function judgedEntries(tables: Tables): RawBuilder<unknown> {
  return sql`
candidate AS MATERIALIZED (
  SELECT DISTINCT ON (scan_id) *
  FROM received
  ORDER BY scan_id, revision DESC, pending IS NOT NULL, position
),
judged AS MATERIALIZED (
  SELECT candidate.*,
    CASE
      WHEN known.scan_id IS NULL THEN 'new'
      WHEN candidate.revision > known.revision THEN 'newer'
      WHEN candidate.revision < known.revision THEN 'stale'
      WHEN candidate.status = known.status AND (
        known.result_state = 'pending' AND candidate.pending IS NULL
        OR known.markdown IS NULL AND candidate.markdown IS NOT NULL
        OR known.delivered_at IS NULL AND candidate.delivered_at IS NOT NULL) THEN 'fuller'
      ELSE 'same'
    END AS verdict,
    COALESCE(candidate.revision = known.revision AND ${contentDiffers('candidate', 'known')}, false) AS conflicting
  FROM candidate
  LEFT JOIN (SELECT *, CASE WHEN result_state = 'pending' THEN pending_reason END AS pending FROM ${tables.runs}) AS known
    ON known.scan_id = candidate.scan_id
),
duplicate AS MATERIALIZED (
  SELECT count(*) FILTER (WHERE other.revision < candidate.revision)::int AS stale,
    count(*) FILTER (WHERE other.revision = candidate.revision)::int AS same,
    count(*) FILTER (WHERE other.revision = candidate.revision AND ${contentDiffers('other', 'candidate')})::int AS conflicts
  FROM received AS other
  JOIN candidate ON candidate.scan_id = other.scan_id AND candidate.position <> other.position
)`;
}

/** Same revision, other content. Data is compared only where neither side waits for its full result. */
function contentDiffers(left: string, right: string): RawBuilder<unknown> {
  const [a, b] = [sql.raw(left), sql.raw(right)];
  return sql`(
    (${a}.status, ${a}.failure_reason, ${a}.error) IS DISTINCT FROM (${b}.status, ${b}.failure_reason, ${b}.error)
    OR ${a}.pending IS NULL AND ${b}.pending IS NULL AND ${a}.data IS DISTINCT FROM ${b}.data
  )`;
}

const COLUMNS = sql.raw(`revision, status, environment, document_type_slug, document_type_name, file_name, partner_name,
  partner_test_mode, ocr_confidence, data, failure_reason, error, submitted_at, completed_at, delivered_at, markdown,
  repaired, extra`);

/** `stored`: new scans and higher revisions. The condition is looked at again on the row as it is when its turn comes. */
function storedRows(tables: Tables, lease: LeaseGrant, settings: CommitSettings): RawBuilder<unknown> {
  return sql`
stored AS (
  INSERT INTO ${tables.runs} AS run (scan_id, ${COLUMNS}, result_state, pending_reason, pending_since, next_try_at,
    attempts, feed, first_synced_at, synced_at, change_seq)
  SELECT scan_id, ${COLUMNS},
    CASE WHEN pending IS NULL THEN 'complete' ELSE 'pending' END,
    pending,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() END,
    CASE WHEN pending IS NOT NULL THEN statement_timestamp() + ${settings.pendingRetryMs} * interval '1 millisecond' END,
    0, ${lease.feed}, statement_timestamp(), statement_timestamp(), ${tables.nextChange}
  FROM clock CROSS JOIN (SELECT * FROM judged WHERE verdict IN ('new', 'newer') ORDER BY scan_id) AS judged
  ON CONFLICT (scan_id) DO UPDATE SET
    (${COLUMNS}, result_state, pending_reason, pending_since, next_try_at, attempts, feed, synced_at, change_seq) = ROW (
      excluded.revision, excluded.status, excluded.environment, excluded.document_type_slug,
      excluded.document_type_name, excluded.file_name, excluded.partner_name, excluded.partner_test_mode,
      excluded.ocr_confidence, excluded.data, excluded.failure_reason, excluded.error, excluded.submitted_at,
      excluded.completed_at, excluded.delivered_at, excluded.markdown, excluded.repaired, excluded.extra,
      excluded.result_state, excluded.pending_reason, excluded.pending_since, excluded.next_try_at, excluded.attempts,
      excluded.feed, excluded.synced_at, excluded.change_seq)
  WHERE excluded.revision > run.revision
  RETURNING run.scan_id, run.xmax = 0 AS inserted
)`;
}

/** `filled`: the revision that is stored already, with values that were missing. What is there stays. */
function filledRows(tables: Tables, lease: LeaseGrant): RawBuilder<unknown> {
  return sql`
filled AS (
  UPDATE ${tables.runs} AS run SET
    data = COALESCE(run.data, judged.data),
    markdown = COALESCE(run.markdown, judged.markdown),
    delivered_at = COALESCE(run.delivered_at, judged.delivered_at),
    repaired = run.repaired OR judged.repaired,
    result_state = CASE WHEN judged.pending IS NULL THEN 'complete' ELSE run.result_state END,
    pending_reason = CASE WHEN judged.pending IS NOT NULL THEN run.pending_reason END,
    pending_since = CASE WHEN judged.pending IS NOT NULL THEN run.pending_since END,
    next_try_at = CASE WHEN judged.pending IS NOT NULL THEN run.next_try_at END,
    feed = ${lease.feed},
    synced_at = statement_timestamp(),
    change_seq = ${tables.nextChange}
  FROM clock CROSS JOIN judged
  WHERE judged.verdict = 'fuller' AND run.scan_id = judged.scan_id AND run.revision = judged.revision
    AND run.status = judged.status
  RETURNING run.scan_id
)`;
}
