import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import type { CommitOutcome, CommitStore, LeaseGrant, PageCommit, PageContent } from '../../sync/ports/index.js';
import { batchCalls } from '../connection/batch-calls.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { isHeld } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, type CommitSettings, freshnessColumns } from './commit-row.js';
import { storedEntries } from './entries.js';
import { emptyPages, feedPage } from './feed-page.js';
import { passPage } from './pass-page.js';
import { retryOvertaken } from './retry-overtaken.js';

/**
 * Creates the commits of the store. Each is one statement, so that no error inside it can be swallowed and an unknown outcome
 * leaves either everything or nothing. `test/storage/commit/statements/` has each statement as PostgreSQL receives it.
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
      return await db
        .connection()
        .execute((connected) => retryOvertaken(tables.schema, () => run(connected, statement)));
    } finally {
      settings.onTransaction?.(monotonic() - startedAt);
    }
  };
  const commitOne = async (feed: string, statement: (now: number) => RawBuilder<CommitRow>) =>
    (await commit(statement)).get(feed) ?? FENCED;
  const commitPage = (page: PageCommit) => commitOne(page.lease.feed, (now) => feedPage(tables, settings, page, now));
  /** A feed without an outcome is fenced or locked. Its page is committed again, alone, and the other feeds do not wait for it. */
  const commitEmptyPages = async (pages: readonly [PageCommit, ...PageCommit[]]) => {
    const outcomes = await commit((now) => emptyPages(tables, settings, pages, now));
    return pages.map((page) => outcomes.get(page.lease.feed) ?? commitPage(page));
  };
  const commitEmptyPage = batchCalls<PageCommit, CommitOutcome>(
    async (pages) => (pages.length === 1 ? [await commitPage(pages[0])] : commitEmptyPages(pages)),
    settings.batching,
  );

  return {
    commitPage: (page) => (page.batch.length + page.quarantine.length === 0 ? commitEmptyPage(page) : commitPage(page)),

    commitPass: (page) => commitOne(page.lease.feed, () => passPage(tables, settings, page)),

    commitResults: (lease, batch, quarantine = []) =>
      commitOne(lease.feed, () => loadedResult(tables, settings, lease, { batch, quarantine })),

    /** Also runs the checks that PostgreSQL defers to the commit. */
    async tryEntries(lease, batch) {
      await retryOvertaken(tables.schema, async () => {
        const transaction = await db.startTransaction().execute();
        try {
          // Releases the feed's row soon if this process is paused or cut off.
          await sql`SET LOCAL idle_in_transaction_session_timeout = '5s'`.execute(transaction);
          await run(transaction, () => loadedResult(tables, settings, lease, { batch, quarantine: [] }));
          await sql`SET CONSTRAINTS ALL IMMEDIATE`.execute(transaction);
        } finally {
          await transaction.rollback().execute();
        }
      });
    },
  };
}

/** Commits entries without a position: a result that was loaded on its own, and trials of entries that are rolled back. */
function loadedResult(tables: Tables, settings: CommitSettings, lease: LeaseGrant, content: PageContent) {
  return sql<CommitRow>`
WITH held AS MATERIALIZED (
  SELECT feed.name, feed.data_complete_as_of, 'result' AS stored_by
  FROM ${tables.feeds} AS feed WHERE ${isHeld(lease)} FOR NO KEY UPDATE
),

${storedEntries(tables, settings, lease.feed, content)}

SELECT held.name, counts.*, false AS end_claimed, held.data_complete_as_of,
  ${freshnessColumns(sql`held.data_complete_as_of`)}
FROM held CROSS JOIN counts`;
}

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
