import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import type { CommitOutcome, CommitStore, PageCommit } from '../../sync/ports/index.js';
import { batchCalls } from '../connection/batch-calls.js';
import { DatabaseError, OVERTAKEN, sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import type { Tables } from '../tables/schema.js';
import type { CommitRow } from './commit-row.js';
import type { CommitSettings } from './commit-settings.js';
import { type FeedPages, feedPage } from './feed-page.js';
import { loadedResult } from './loaded-result.js';
import { passPage } from './pass-page.js';

/**
 * Creates the commits of the store. Each is one statement, so that no error inside it can be swallowed and an unknown outcome
 * leaves either everything or nothing. Returns `fenced` if the lease was lost or another position is stored.
 */
export function createCommits({ db, tables }: StoreConnection, settings: CommitSettings): CommitStore {
  const { monotonic, databaseClock } = settings;

  /** Runs the statement, which is built just before: the ages in it must not grow while it waits for a connection. */
  const run = async (connected: QueryExecutorProvider, statement: (now: number) => RawBuilder<CommitRow>) => {
    const readAt = monotonic();
    const { rows } = await statement(readAt).execute(connected);
    databaseClock.note(rows[0]);
    return new Map(rows.map((row) => [row.name, committed(row, readAt)]));
  };
  /** Returns the outcomes by feed, without those that are fenced. */
  const commit = async (statement: (now: number) => RawBuilder<CommitRow>) => {
    const startedAt = monotonic();
    try {
      return await db.connection().execute((connected) => retryOvertaken(tables, () => run(connected, statement)));
    } finally {
      settings.onTransaction?.(monotonic() - startedAt);
    }
  };
  /** Commits one page, or several without entries. A feed that is fenced or locked among several is retried alone; the others do not wait for it. */
  const commitPages = async (pages: FeedPages) => {
    const outcomes = await commit((now) => feedPage(tables, settings, pages, now));
    return pages.map((page) => outcomes.get(page.lease.feed) ?? (pages.length > 1 ? commitAlone(page) : FENCED));
  };
  const commitAlone = async (page: PageCommit): Promise<CommitOutcome> => (await commitPages([page]))[0] ?? FENCED;
  const commitBatched = batchCalls(commitPages, settings.batching);

  return {
    commitPage: (page) => (page.batch.length + page.quarantine.length === 0 ? commitBatched(page) : commitAlone(page)),

    commitPass: async (page) => (await commit(() => passPage(tables, settings, page))).get(page.lease.feed) ?? FENCED,

    commitResults: async (lease, batch, quarantine = []) =>
      (await commit(() => loadedResult(tables, settings, lease, { batch, quarantine }))).get(lease.feed) ?? FENCED,

    /** Also runs the checks that PostgreSQL defers to the commit. */
    async tryEntries(lease, batch) {
      await retryOvertaken(tables, async () => {
        const transaction = await db.startTransaction().execute();
        try {
          await sql`SET LOCAL idle_in_transaction_session_timeout = ${IDLE_TIMEOUT}`.execute(transaction);
          await run(transaction, () => loadedResult(tables, settings, lease, { batch, quarantine: [] }));
          await sql`SET CONSTRAINTS ALL IMMEDIATE`.execute(transaction);
        } finally {
          await transaction.rollback().execute();
        }
      });
    },
  };
}

/** Releases the feed's row soon if this process is paused or cut off before it rolls the transaction back. */
const IDLE_TIMEOUT = sql.lit('5s');

const FENCED: CommitOutcome = { kind: 'fenced' };

function committed(row: CommitRow, readAt: number): CommitOutcome {
  const { inserted = 0, updated = 0, filled = 0, unchanged = 0, stale = 0, quarantined = 0, conflicts = 0 } = row;
  return {
    kind: 'committed',
    counts: { inserted, updated, filled, unchanged, stale, quarantined, conflicts, stored: row.stored ?? [] },
    endClaimed: row.end_claimed,
    asOf: { readAt, dataCompleteAsOf: row.data_complete_as_of, lagMs: row.lag_ms },
  };
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
