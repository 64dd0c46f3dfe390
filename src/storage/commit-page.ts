import { type Kysely, sql } from 'kysely';
import type { CommitOutcome, EntryBatch, LeaseGrant, PageCommit, PassCommit, QuarantineEntry } from '../sync/ports.js';
import type { CommitSettings } from './commit-settings.js';
import { fenceOnEpoch, fenceOnPosition } from './fence.js';
import { fenceOnPass, passPosition } from './passes.js';
import { checkpointRows } from './position.js';
import type { Tables } from './schema.js';
import {
  type CommitInput,
  type FenceClause,
  retryOvertaken,
  runFence,
  writeEntries,
  writeOnce,
} from './write-entries.js';

/**
 * Commits a page: fence, rows, history, quarantine and cursor in one statement, so that no error in between can be
 * swallowed and an unknown outcome leaves either all or nothing. `fenced` when the epoch or the cursor has changed.
 */
export function commitPage(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: PageCommit,
): Promise<CommitOutcome> {
  const checkpoint = checkpointRows(tables, commit);
  return commitEntries(
    db,
    tables,
    settings,
    commit,
    (now) => sql`WITH fence AS MATERIALIZED (${fenceOnPosition(tables, commit, settings, now)}), ${checkpoint}`,
  );
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
    () => sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)})`,
  );
}

/** Of the transaction that is rolled back: if this process is frozen or cut off meanwhile, the feed's row is free again soon. */
const LONGEST_IDLE = sql.lit('5s');

/** Writes the entries, checks what is checked at a commit, and rolls back: tells whether PostgreSQL takes all of their values. */
export async function tryEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  batch: EntryBatch,
): Promise<void> {
  const fence = () => sql`WITH fence AS MATERIALIZED (${fenceOnEpoch(tables, lease)})`;
  await retryOvertaken(tables, async () => {
    const transaction = await db.startTransaction().execute();
    try {
      await sql`SET LOCAL idle_in_transaction_session_timeout = ${LONGEST_IDLE}`.execute(transaction);
      await writeOnce(transaction, tables, settings, { lease, batch, quarantine: [] }, fence);
      await sql`SET CONSTRAINTS ALL IMMEDIATE`.execute(transaction);
    } finally {
      await transaction.rollback().execute();
    }
  });
}

/** Commits a page of a pass with the pass's own position. Returns `fenced` if the lease was lost, or the pass has moved or ended. */
export function commitPass(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  commit: PassCommit,
): Promise<CommitOutcome> {
  return commitEntries(
    db,
    tables,
    settings,
    { ...commit, notes: sql`, ${passPosition(tables, commit)}` },
    () => sql`WITH fence AS MATERIALIZED (${fenceOnPass(tables, commit)})`,
  );
}

/** Statements are built once a connection is at hand: the ages in them must not grow while they wait for one. */
function commitEntries(
  db: Kysely<unknown>,
  tables: Tables,
  settings: CommitSettings,
  input: CommitInput,
  fence: FenceClause,
): Promise<CommitOutcome> {
  return db.connection().execute(async (connection) => {
    const result = isEmpty(input)
      ? await runFence(connection, settings, input, fence)
      : await writeEntries(connection, tables, settings, input, fence);
    if (result === null) return { kind: 'fenced' };
    const { readAt, fence: row, counts } = result;
    const { data_complete_as_of: dataCompleteAsOf, lag_ms: lagMs } = row;
    return { kind: 'committed', counts, asOf: { readAt, dataCompleteAsOf, lagMs } };
  });
}

function isEmpty({ batch, quarantine }: CommitInput): boolean {
  return batch.entries.length === 0 && quarantine.length === 0;
}
