import { type Kysely, type RawBuilder, sql } from 'kysely';
import { addCounts, NO_COUNTS } from '../outcome/counts.js';
import type { CommitCounts, PageCommit } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { DATABASE_MS } from './database-clock.js';
import { DatabaseError, OVERTAKEN } from './errors.js';
import type { FenceRow } from './fence.js';
import { judgedEntries, WRITTEN_VERDICTS } from './judged-entries.js';
import { quarantineRows } from './quarantine.js';
import { receivedEntries } from './received-entries.js';
import type { Tables } from './schema.js';
import { writtenRows } from './written-rows.js';

export type Entries = Pick<PageCommit, 'lease' | 'batch' | 'quarantine'>;

/** The condition under which entries are written: `WITH fence AS …` and what goes with it. Without a row it does not hold. */
export interface Fence {
  /** Moves nothing. */
  readonly held: () => RawBuilder<unknown>;
  /** The same, and moves the position; absent where there is none. Its ages are counted up to `now`. */
  readonly moved?: (now: number) => RawBuilder<unknown>;
}

/** What a commit did. */
export interface Written {
  /** When the ages in its fence were read, monotonic milliseconds. */
  readonly readAt: number;
  readonly fence: FenceRow;
  readonly counts: CommitCounts;
}

/**
 * Writes the entries and moves the position, in one statement. Null: the fence does not hold.
 *
 * Entries are judged by what was stored when the statement began. Where another writer has stored a new scan since, or
 * raised a stored one, the statement is refused and nothing has happened. From then on the rows are written first, and the
 * position moves behind them.
 */
export function writeEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  entries: Entries,
  fence: Fence,
): Promise<Written | null> {
  return settings.rivals.allowFor((rivalsExpected) =>
    rivalsExpected
      ? writeAmongRivals(db, tables, settings, entries, fence)
      : writeOnce(db, tables, settings, entries, fence.moved ?? fence.held, { only: null, rivalsExpected }),
  );
}

/** So often an entry is judged anew without a pause: each time another writer must have come in between once more. */
const MOST_TRIES = 5;

/**
 * What another writer came in between is judged again, by itself, until nothing is left of it. Rows that were written
 * stay where a later statement fails; they are read again, and are known by then.
 */
async function writeAmongRivals(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  entries: Entries,
  fence: Fence,
): Promise<Written | null> {
  let counts = NO_COUNTS;
  let [only, quarantine]: [readonly number[] | null, Entries['quarantine']] = [null, entries.quarantine];
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const how: How = { only, rivalsExpected: true };
    const once = await writeOnce(db, tables, settings, { ...entries, quarantine }, fence.held, how);
    if (once === null) return null;
    counts = addCounts(counts, once.counts);
    if (once.overtaken.length === 0) {
      const moved = fence.moved === undefined ? once : await moveAlone(db, settings, fence.moved);
      return moved === null ? null : { ...moved, counts };
    }
    settings.rivals.met();
    [only, quarantine] = [once.overtaken, []];
  }
  throw overtakenAgain(tables);
}

function overtakenAgain({ schema }: Tables): DatabaseError {
  const message = `a run of this page could not be written: another writer raised it ${MOST_TRIES} times meanwhile, or a trigger on ${schema}.runs passes it over (SQLSTATE ${OVERTAKEN})`;
  return new DatabaseError(OVERTAKEN, 'serialization', 'retry', message);
}

interface Answered extends FenceRow {
  database_ms: number;
}

/** Where nothing is left to write. */
export async function moveAlone(
  db: Kysely<unknown>,
  { monotonic, databaseClock }: CommitSettings,
  fence: (now: number) => RawBuilder<unknown>,
): Promise<Written | null> {
  const readAt = monotonic();
  const { rows } = await sql<Answered>`${fence(readAt)} SELECT fence.*, ${DATABASE_MS} FROM fence`.execute(db);
  const row = databaseClock.note(rows[0]);
  return row === undefined ? null : { readAt, fence: row, counts: NO_COUNTS };
}

interface How {
  /** Positions of entries from 1, where not all are meant. */
  readonly only: readonly number[] | null;
  /** Those that were overtaken are told of; else the statement is refused for them. */
  readonly rivalsExpected: boolean;
}

interface Once extends Written {
  /** Positions of entries whose scans were worth writing, and met a row that another writer had changed meanwhile. */
  readonly overtaken: readonly number[];
}

interface Counted extends Answered, Omit<CommitCounts, 'stored'> {
  stored: string[] | null;
  overtaken: number[] | null;
}

export async function writeOnce(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  { lease, batch, quarantine }: Entries,
  fence: (now: number) => RawBuilder<unknown>,
  { only, rivalsExpected }: How,
): Promise<Once | null> {
  const readAt = settings.monotonic();
  const { rows } = await sql<Counted>`
${fence(readAt)},
${receivedEntries(batch, only)},
${judgedEntries(tables, batch, settings)},
${writtenRows(tables, lease, settings, rivalsExpected)},
overtaken AS MATERIALIZED (
  SELECT scan_id FROM judged
  WHERE verdict IN ${WRITTEN_VERDICTS} AND scan_id NOT IN (SELECT scan_id FROM written)
),
${quarantineRows(tables, lease, quarantine)}
SELECT fence.*, ${DATABASE_MS},
  (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
  (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
  (SELECT count(*)::int FROM filled) AS filled,
  settled_counts.same AS unchanged, settled_counts.stale, settled_counts.conflicts,
  (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
  (SELECT json_agg(scan_id) FROM stored) AS stored,
  -- With the others of their scans, since these are united again.
  (SELECT json_agg(position) FROM received WHERE scan_id IN (SELECT scan_id FROM overtaken)) AS overtaken,
  -- Where something is not written that should be, the position must not move either.
  CASE
    WHEN EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}) AND NOT EXISTS (SELECT FROM clock)
      THEN ${tables.refuseMissingClock}
    ${rivalsExpected ? sql`` : sql`WHEN EXISTS (SELECT FROM overtaken) THEN ${tables.refuseOvertaken}`}
  END
FROM fence CROSS JOIN (
  SELECT COALESCE(sum((verdict = 'same')::int + others_same), 0)::int AS same,
    COALESCE(sum((verdict IN ('stale', 'barred'))::int + others_stale), 0)::int AS stale,
    COALESCE(sum(conflicting::int + others_conflicts), 0)::int AS conflicts
  FROM judged WHERE scan_id NOT IN (SELECT scan_id FROM overtaken)
) AS settled_counts`.execute(db);
  const row = settings.databaseClock.note(rows[0]);
  if (row === undefined) return null;
  const { inserted, updated, filled, unchanged, stale, quarantined, conflicts } = row;
  const counts = { inserted, updated, filled, unchanged, stale, quarantined, conflicts, stored: row.stored ?? [] };
  return { readAt, fence: row, counts, overtaken: row.overtaken ?? [] };
}
