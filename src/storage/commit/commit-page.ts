import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { type CommitCounts, NO_COUNTS } from '../../core/counts.js';
import type { CommitOutcome, FeedStore, PageCommit } from '../../sync/ports/index.js';
import { batchCalls } from '../connection/batch-calls.js';
import { DATABASE_MS } from '../connection/database-clock.js';
import { DatabaseError, OVERTAKEN, sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { fenceOnPass, passPosition } from '../passes/passes.js';
import type { Tables } from '../schema/schema.js';
import type { CommitSettings } from './commit-settings.js';
import { type CommitInput, commitStatement, type FenceAnswer } from './commit-statement.js';
import { fenceOnLease, fenceOnPositions } from './fence.js';
import { checkpointRows } from './position.js';

/**
 * Creates the commits of the store. Each is one statement with its fence, so that no error inside it can be swallowed and an
 * unknown outcome leaves either everything or nothing. Returns `fenced` if the lease was lost or another position is stored.
 */
export function createCommits(
  { db, tables }: StoreConnection,
  settings: CommitSettings,
): Pick<FeedStore, 'commitPage' | 'commitPass' | 'commitResults' | 'tryEntries'> {
  const { monotonic, databaseClock, batching } = settings;

  /** Runs the fence alone, for commits without entries. Returns the feeds for which it holds. */
  const runFence = async (connected: QueryExecutorProvider, { fence, lastParts = sql`` }: Positions) => {
    const readAt = monotonic();
    const statement = sql<FenceAnswer>`${fence(readAt)}${lastParts} SELECT fence.*, ${DATABASE_MS} FROM fence`;
    const { rows } = await statement.execute(connected);
    databaseClock.note(rows[0]);
    return rows.map((row) => committed(row, readAt, NO_COUNTS));
  };

  /** Runs the statement once. Returns null if the fence does not hold; fails with SF002 if another writer overtakes it. */
  const writeEntries = async (connected: QueryExecutorProvider, input: CommitInput) => {
    const readAt = monotonic();
    const { rows } = await commitStatement(tables, settings, input, readAt).execute(connected);
    const row = databaseClock.note(rows[0]);
    if (row === undefined) return FENCED;
    const { inserted, updated, filled, unchanged, stale, quarantined, conflicts } = row;
    const counts = { inserted, updated, filled, unchanged, stale, quarantined, conflicts, stored: row.stored ?? [] };
    return committed(row, readAt, counts).outcome;
  };

  // Statements are built once a connection is available: the ages in them must not grow while they wait for one.
  const timed = async <T>(work: (connected: QueryExecutorProvider) => Promise<T>): Promise<T> => {
    const startedAt = monotonic();
    try {
      return await db.connection().execute(work);
    } finally {
      settings.onTransaction?.(monotonic() - startedAt);
    }
  };
  const commit = (input: CommitInput): Promise<CommitOutcome> =>
    timed(async (connected) => {
      if (!isEmpty(input)) return retryOvertaken(tables, () => writeEntries(connected, input));
      const [result] = await runFence(connected, input);
      return result?.outcome ?? FENCED;
    });

  /** Moves a feed whose page has no entries. */
  const moveOne = async (page: PageCommit): Promise<CommitOutcome> => {
    const [moved] = await timed((connected) => runFence(connected, positionsOf([page])));
    return moved?.outcome ?? FENCED;
  };
  /** Moves several feeds. A feed that is fenced or locked by another statement is retried alone; the others do not wait for it. */
  const movePositions = async (pages: readonly PageCommit[]) => {
    const [first] = pages;
    if (first !== undefined && pages.length === 1) return [moveOne(first)];
    const moved = await timed((connected) => runFence(connected, positionsOf(pages)));
    const outcomes = new Map(moved.map(({ feed, outcome }) => [feed, outcome]));
    return pages.map((page) => outcomes.get(page.lease.feed) ?? moveOne(page));
  };
  const movePosition = batchCalls(movePositions, batching);
  const positionsOf = (pages: readonly PageCommit[]): Positions => ({
    fence: (now) => {
      const fence = fenceOnPositions(tables, pages, settings, now);
      // At rest the cursors do not move, and half of the statement, and of the time to plan it, is not needed.
      return pages.some(({ from, to }) => from !== to) ? sql`${fence}, ${checkpointRows(tables)}` : fence;
    },
  });

  return {
    commitPage: (page) =>
      isEmpty(page) ? movePosition(page) : commit({ ...page, ...positionsOf([page]), storedBy: sql`'feed'` }),

    commitPass: (page) =>
      commit({
        ...page,
        storedBy: sql`(SELECT kind FROM fence)`,
        fence: () => withFence(fenceOnPass(tables, page)),
        lastParts: sql`, ${passPosition(tables, page)}`,
      }),

    commitResults: (lease, batch, quarantine = []) =>
      commit({ lease, batch, quarantine, storedBy: LOADED, fence: () => withFence(fenceOnLease(tables, lease)) }),

    /** Also runs the checks that PostgreSQL defers to the commit. */
    async tryEntries(lease, batch) {
      const fence = () => withFence(fenceOnLease(tables, lease));
      await retryOvertaken(tables, async () => {
        const transaction = await db.startTransaction().execute();
        try {
          await sql`SET LOCAL idle_in_transaction_session_timeout = ${IDLE_TIMEOUT}`.execute(transaction);
          await writeEntries(transaction, { lease, batch, quarantine: [], storedBy: LOADED, fence });
          await sql`SET CONSTRAINTS ALL IMMEDIATE`.execute(transaction);
        } finally {
          await transaction.rollback().execute();
        }
      });
    },
  };
}

/** For `stored_by`: a result that was loaded on its own. */
const LOADED = sql<string>`'result'`;

/** Releases the feed's row soon if this process is paused or cut off before it rolls the transaction back. */
const IDLE_TIMEOUT = sql.lit('5s');

function withFence(fence: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`WITH fence AS MATERIALIZED (${fence})`;
}

type Positions = Pick<CommitInput, 'fence' | 'lastParts'>;

const FENCED: CommitOutcome = { kind: 'fenced' };

function committed(fence: FenceAnswer, readAt: number, counts: CommitCounts) {
  const { name: feed, data_complete_as_of: dataCompleteAsOf, lag_ms: lagMs } = fence;
  const outcome: CommitOutcome = { kind: 'committed', counts, asOf: { readAt, dataCompleteAsOf, lagMs } };
  return { feed, outcome };
}

function isEmpty({ batch, quarantine }: Pick<CommitInput, 'batch' | 'quarantine'>): boolean {
  return batch.length === 0 && quarantine.length === 0;
}

/** Maximum number of tries of a statement that is overtaken by other writers. */
const MAX_TRIES = 5;

/**
 * Retries an overtaken write on a fresh snapshot. Entries are judged by the snapshot of their statement. If another writer has
 * changed one of their rows since, and the entry can no longer be written as judged, the whole statement fails. No pause is
 * needed: the other writer has committed by then.
 */
async function retryOvertaken<T>({ schema }: Tables, write: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    try {
      return await write();
    } catch (error) {
      if (sqlstateOf(error) !== OVERTAKEN) throw error;
    }
  }
  const message = `a run of this page could not be written: each of ${MAX_TRIES} tries was overtaken by another writer, or a trigger or row security policy on ${schema}.runs skips the row (SQLSTATE ${OVERTAKEN}); remove it`;
  throw new DatabaseError(OVERTAKEN, 'serialization', 'retry', message);
}
