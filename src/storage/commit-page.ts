import { type Kysely, sql } from 'kysely';
import type { CommitOutcome, EntryBatch, LeaseGrant, PageCommit, QuarantineEntry, SweepCommit } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { fenceAtPosition, fenceOnEpoch, fenceOnPosition } from './fence.js';
import { checkpointRows } from './position.js';
import type { Tables } from './schema.js';
import { fenceOnSweep, sweepPosition } from './sweeps.js';
import { type Entries, type Fence, moveAlone, writeEntries, writeOnce } from './write-entries.js';

/**
 * Commits a page: fence, rows, history, quarantine and cursor in one statement, so that no error in between can be
 * swallowed and an unknown outcome leaves either all or nothing; the cursor last where other writers store the same runs
 * (write-entries.ts). `fenced` when the epoch or the cursor has changed.
 */
export function commitPage(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: PageCommit,
): Promise<CommitOutcome> {
  const checkpoint = checkpointRows(tables, commit);
  return commitEntries(db, tables, settings, commit, {
    held: () => sql`WITH fence AS MATERIALIZED (${fenceAtPosition(tables, commit)})`,
    moved: (now) => sql`WITH fence AS MATERIALIZED (${fenceOnPosition(tables, commit, settings, now)}), ${checkpoint}`,
  });
}

/** Stores results loaded later, without moving the cursor; `fenced` when the lease was lost. */
export function commitResults(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  batch: EntryBatch,
  quarantine: readonly QuarantineEntry[] = [],
): Promise<CommitOutcome> {
  return commitEntries(
    db,
    tables,
    settings,
    { lease, batch, quarantine },
    {
      held: () => sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)})`,
    },
  );
}

/** Writes the entries and rolls back: tells whether PostgreSQL takes all of their values. */
export async function tryEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  batch: EntryBatch,
): Promise<void> {
  const transaction = await db.startTransaction().execute();
  try {
    const fence = () => sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)})`;
    const how = { only: null, rivalsExpected: false };
    await writeOnce(transaction, tables, settings, { lease, batch, quarantine: [] }, fence, how);
  } finally {
    await transaction.rollback().execute();
  }
}

/**
 * Stores a page of a sweep with the sweep's own position. Returns `fenced` if the lease was lost, or if the sweep is over or
 * has another position.
 */
export function commitSweep(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: SweepCommit,
): Promise<CommitOutcome> {
  const held = () => sql`WITH fence AS MATERIALIZED (${fenceOnSweep(tables, commit)})`;
  return commitEntries(db, tables, settings, commit, {
    held,
    moved: () => sql`${held()}, ${sweepPosition(tables, commit)}`,
  });
}

/** Statements are built once a connection is at hand: the ages in them must not grow while they wait for one. */
export function commitEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  entries: Entries,
  fence: Fence,
): Promise<CommitOutcome> {
  return db.connection().execute(async (connection) => {
    const written = isEmpty(entries)
      ? await moveAlone(connection, settings, fence.moved ?? fence.held)
      : await writeEntries(connection, tables, settings, entries, fence);
    if (written === null) return { kind: 'fenced' };
    const { readAt, fence: row, counts } = written;
    const { data_complete_as_of: dataCompleteAsOf, lag_ms: lagMs } = row;
    return { kind: 'committed', counts, asOf: { readAt, dataCompleteAsOf, lagMs } };
  });
}

function isEmpty({ batch, quarantine }: Entries): boolean {
  return batch.entries.length === 0 && quarantine.length === 0;
}
