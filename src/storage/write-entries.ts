import { type Kysely, type RawBuilder, sql } from 'kysely';
import { addCounts, NO_COUNTS } from '../outcome/counts.js';
import type { CommitCounts, PageCommit } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { type FenceRow, fenceOnEpoch } from './fence.js';
import { judgedEntries, WRITTEN_VERDICTS } from './judged-entries.js';
import { quarantineRows } from './quarantine.js';
import { receivedEntries } from './received-entries.js';
import type { Tables } from './schema.js';
import { writtenRows } from './written-rows.js';

export type Entries = Pick<PageCommit, 'lease' | 'batch' | 'quarantine'>;

/** What a commit did. */
export interface Written {
  /** When the ages in its fence were read, monotonic milliseconds. */
  readonly readAt: number;
  readonly fence: FenceRow;
  readonly counts: CommitCounts;
}

/**
 * Writes the entries in one statement, under `fence` (a `WITH` and its first parts). Null: the fence does not hold.
 *
 * Entries are judged by what was stored when the statement began. Where another writer stored a new scan since, all of it
 * is judged and sent anew. Where that is allowed for, or a stored scan was raised, the rest is written, and that entry is
 * judged and written once more, by itself: the row there may be less complete. Should the lease be lost in between, that is
 * left to whoever has it now.
 *
 * @param fence of ages that are counted up to `now`
 */
export async function writeEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  entries: Entries,
  fence: (now: number) => RawBuilder<unknown>,
): Promise<Written | null> {
  const { monotonic, rivals } = settings;
  const first = await rivals.allowFor(async (rivalsExpected) => {
    const readAt = monotonic();
    const how = { only: null, rivalsExpected };
    const once = await writeOnce(db, tables, settings, entries, fence(readAt), how);
    return once === null ? null : { ...once, readAt };
  });
  if (first === null || first.overtaken.length === 0) return first;
  rivals.met();
  const epoch = sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, entries.lease)})`;
  const how = { only: first.overtaken, rivalsExpected: true };
  const again = await writeOnce(db, tables, settings, { ...entries, quarantine: [] }, epoch, how);
  const left = again === null ? first.overtaken : again.overtaken;
  const counts = addCounts(first.counts, again?.counts ?? NO_COUNTS);
  return { ...first, counts: { ...counts, stale: counts.stale + left.length } };
}

interface How {
  /** Positions of entries from 1, where not all are meant. */
  readonly only: readonly number[] | null;
  readonly rivalsExpected: boolean;
}

interface Once extends Omit<Written, 'readAt'> {
  /** Positions of entries that were worth writing, and met a row that another writer had raised in the meantime. */
  readonly overtaken: readonly number[];
}

interface Counted extends FenceRow, Omit<CommitCounts, 'stored'> {
  stored: string[] | null;
  overtaken: number[] | null;
}

async function writeOnce(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  { lease, batch, quarantine }: Entries,
  fence: RawBuilder<unknown>,
  { only, rivalsExpected }: How,
): Promise<Once | null> {
  const { rows } = await sql<Counted>`
${fence},
${receivedEntries(batch, only)},
${judgedEntries(tables, settings)},
${writtenRows(tables, lease, settings, rivalsExpected)},
overtaken AS MATERIALIZED (
  SELECT position::int FROM judged
  WHERE verdict IN ${WRITTEN_VERDICTS} AND scan_id NOT IN (SELECT scan_id FROM written)
),
${quarantineRows(tables, lease, quarantine)}
SELECT fence.*,
  (SELECT count(*)::int FROM stored WHERE inserted) AS inserted,
  (SELECT count(*)::int FROM stored WHERE NOT inserted) + (SELECT count(*)::int FROM filled) AS updated,
  (SELECT count(*)::int FROM filled) AS filled,
  (SELECT count(*)::int FROM judged WHERE verdict = 'same') + duplicate.same AS unchanged,
  (SELECT count(*)::int FROM judged WHERE verdict IN ('stale', 'barred')) + duplicate.stale AS stale,
  (SELECT count(*)::int FROM judged WHERE conflicting AND position NOT IN (SELECT position FROM overtaken))
    + duplicate.conflicts AS conflicts,
  (SELECT count(*)::int FROM quarantined WHERE state = 'open') AS quarantined,
  (SELECT json_agg(scan_id) FROM stored) AS stored,
  (SELECT json_agg(position) FROM overtaken) AS overtaken,
  -- Without the clock nothing was written: the position must not move either.
  CASE WHEN EXISTS (SELECT FROM judged WHERE verdict IN ${WRITTEN_VERDICTS}) AND NOT EXISTS (SELECT FROM clock)
    THEN ${tables.refuseMissingClock} END
FROM fence CROSS JOIN duplicate`.execute(db);
  const row = rows[0];
  if (row === undefined) return null;
  const { inserted, updated, filled, unchanged, stale, quarantined, conflicts } = row;
  const counts = { inserted, updated, filled, unchanged, stale, quarantined, conflicts, stored: row.stored ?? [] };
  return { fence: row, counts, overtaken: row.overtaken ?? [] };
}
