import { type Kysely, type RawBuilder, sql } from 'kysely';
import { NO_COUNTS } from '../outcome/counts.js';
import type { CommitCounts, PageCommit } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { DATABASE_MS } from './database-clock.js';
import { DatabaseError, OVERTAKEN, sqlstateOf } from './errors.js';
import type { FenceRow } from './fence.js';
import { judgedEntries, WRITTEN_VERDICTS } from './judged-entries.js';
import { quarantineRows } from './quarantine.js';
import { receivedEntries } from './received-entries.js';
import type { Tables } from './schema.js';
import { writtenRows } from './written-rows.js';

export interface CommitInput extends Pick<PageCommit, 'lease' | 'batch' | 'quarantine'> {
  /** The end of the statement, `, … AS (…)`: what is noted of the rows that it writes. */
  readonly notes?: RawBuilder<unknown>;
}

/**
 * Builds the beginning of a commit statement: `WITH fence AS …`, and the parts that move a position. A fence without a row
 * does not hold, and then nothing is written.
 * @param now monotonic milliseconds, read right before the statement is sent
 */
export type FenceClause = (now: number) => RawBuilder<unknown>;

export interface CommitResult {
  /** When the ages in the fence were read, monotonic milliseconds. */
  readonly readAt: number;
  readonly fence: FenceRow;
  readonly counts: CommitCounts;
}

/** Writes the entries and moves the position, in one statement. Returns null if the fence does not hold. */
export function writeEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  input: CommitInput,
  fence: FenceClause,
): Promise<CommitResult | null> {
  return retryOvertaken(tables, () => writeOnce(db, tables, settings, input, fence));
}

/** Maximum number of tries of a statement that other writers overtake. */
const MOST_TRIES = 5;

/**
 * Tries a write again, on a fresh snapshot, if it was overtaken. Entries are judged by the snapshot of their statement; if
 * another writer has changed one of their rows since, so that it cannot be written as judged, the statement fails as a
 * whole. No pause is needed: the other writer has committed by then.
 */
export async function retryOvertaken<T>(tables: Tables, write: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    try {
      return await write();
    } catch (error) {
      if (sqlstateOf(error) !== OVERTAKEN) throw error;
    }
  }
  throw overtakenAgain(tables);
}

function overtakenAgain({ schema }: Tables): DatabaseError {
  const message = `a run of this page could not be written: other writers overtook each of ${MOST_TRIES} tries, or a trigger on ${schema}.runs skips it (SQLSTATE ${OVERTAKEN})`;
  return new DatabaseError(OVERTAKEN, 'serialization', 'retry', message);
}

interface FenceAnswer extends FenceRow {
  database_ms: number;
}

/** Runs the fence alone, for a commit without entries. Returns null if it does not hold. */
export async function runFence(
  db: Kysely<unknown>,
  { monotonic, databaseClock }: CommitSettings,
  { notes = sql`` }: CommitInput,
  fence: FenceClause,
): Promise<CommitResult | null> {
  const readAt = monotonic();
  const { rows } = await sql<FenceAnswer>`${fence(readAt)}${notes} SELECT fence.*, ${DATABASE_MS} FROM fence`.execute(
    db,
  );
  const row = databaseClock.note(rows[0]);
  return row === undefined ? null : { readAt, fence: row, counts: NO_COUNTS };
}

interface CommitAnswer extends FenceAnswer, Omit<CommitCounts, 'stored'> {
  stored: string[] | null;
}

/** Writes the entries and moves the position. Fails with SF002 if another writer overtakes it. */
export async function writeOnce(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  { lease, batch, quarantine, notes = sql`` }: CommitInput,
  fence: FenceClause,
): Promise<CommitResult | null> {
  const readAt = settings.monotonic();
  const { rows } = await sql<CommitAnswer>`
${fence(readAt)},
${receivedEntries(batch)},
${judgedEntries(tables, batch, settings)},
${writtenRows(tables, lease, settings)},
overtaken AS MATERIALIZED (
  SELECT scan_id FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}
    AND scan_id NOT IN (SELECT scan_id FROM stored UNION ALL SELECT scan_id FROM filled)
),
${quarantineRows(tables, lease, quarantine)}${notes}
SELECT fence.*, ${DATABASE_MS},
  (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
  (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
  (SELECT count(*)::int FROM filled) AS filled,
  judged_counts.same AS unchanged, judged_counts.stale, judged_counts.conflicts,
  (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
  (SELECT json_agg(scan_id) FROM stored) AS stored,
  -- If an entry that should be written is not, the position must not move either.
  CASE
    WHEN EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}) AND NOT EXISTS (SELECT FROM clock)
      THEN ${tables.refuseMissingClock}
    WHEN EXISTS (SELECT FROM overtaken) THEN ${tables.refuseOvertaken}
  END
FROM fence CROSS JOIN (
  SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
    COALESCE(sum((verdict IN ('stale', 'barred'))::int + others_stale), 0)::int AS stale,
    COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
  FROM judged
) AS judged_counts`.execute(db);
  const row = settings.databaseClock.note(rows[0]);
  if (row === undefined) return null;
  const { inserted, updated, filled, unchanged, stale, quarantined, conflicts } = row;
  const counts = { inserted, updated, filled, unchanged, stale, quarantined, conflicts, stored: row.stored ?? [] };
  return { readAt, fence: row, counts };
}
