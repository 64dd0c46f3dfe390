import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import type {
  CommitOutcome,
  CommitStore,
  FeedMove,
  LeaseGrant,
  PageCommit,
  PageContent,
} from '../../sync/ports/index.js';
import { batchCalls } from '../connection/batch-calls.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { isHeld, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import { columnList } from '../tables/run-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, type CommitSettings, freshnessColumns, isEnd } from './commit-row.js';
import { NO_ENTRIES, storedEntries } from './entries.js';
import { passPage } from './pass-page.js';
import { prunedHistory } from './position.js';
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

/**
 * Commits a page of the feed with its cursor and what it proves about freshness. Returns a row, or none if the commit is fenced.
 * @param now monotonic milliseconds, read right before the statement is sent
 */
function feedPage(tables: Tables, settings: CommitSettings, page: PageCommit, now: number) {
  return sql<CommitRow>`
WITH ${heldFeeds(tables, sentMoves([page], settings, now), sql`FOR NO KEY UPDATE OF feed`)},

${storedEntries(tables, settings, page.lease.feed, page)},
${page.from === page.to ? sql`` : checkpoint(tables)}
${movedFeeds(tables)}`;
}

/**
 * Commits pages without entries, each of another feed. Returns a row for each feed whose commit is not fenced. A feed that another
 * writer has locked has no row either: a wait for it would delay all feeds, and could deadlock.
 */
function emptyPages(tables: Tables, settings: CommitSettings, moves: FeedMoves, now: number) {
  return sql<CommitRow>`
WITH ${heldFeeds(tables, sentMoves(moves, settings, now), sql`FOR NO KEY UPDATE OF feed SKIP LOCKED`)},

${NO_ENTRIES},
${moves.every(({ from, to }) => from === to) ? sql`` : checkpoint(tables)}
${movedFeeds(tables)}`;
}

const SENT_LEASE = { feed: sql`sent.feed`, epoch: sql`sent.epoch`, holder: sql`sent.holder` };

/** `sent`: the positions and claims of the pages; `held`: the locked feeds that are still where their page begins. */
function heldFeeds(tables: Tables, sent: RawBuilder<unknown>, lock: RawBuilder<unknown>) {
  return sql`sent AS MATERIALIZED (
  ${sent}
),

-- May wait for the commit before. A condition on the cursor would be applied here to the row before the wait, and would not match.
locked AS MATERIALIZED (
  SELECT feed.name, feed.cursor, feed.delivered_up_to
  FROM ${tables.feeds} AS feed JOIN sent ON ${isHeld(SENT_LEASE)}
  ${lock}
),

held AS (
  SELECT sent.*, locked.name, locked.delivered_up_to, 'feed' AS stored_by
  FROM sent JOIN locked ON locked.name = sent.feed AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor
)`;
}

/**
 * Returns the positions of the pages and what they prove. At the end of the feed, the data is complete up to `polled_at`, when the poll
 * was sent; before the end, up to `complete_up_to`. Neither must be later than it really was by the database's clock, however long the
 * statement takes to arrive. So both are derived from an earlier response of the database (database-clock.ts), like `sent_ms`, the time
 * at which the statement should arrive. The difference of `sent_ms` from the real time, in either direction, is subtracted: the statement
 * was on the way for this time, or the clock was set back by it. Without an earlier response, nothing is claimed.
 */
function sentMoves(moves: FeedMoves, { databaseClock }: CommitSettings, now: number) {
  const databaseMs = (instant: number | null) => (instant === null ? null : databaseClock.reachedAt(instant));
  const columns: readonly Column[] = [
    ['feed', 'text', ({ lease }) => lease.feed],
    ['epoch', 'bigint', ({ lease }) => lease.epoch],
    ['holder', 'text', ({ lease }) => lease.holder],
    ['from_cursor', 'text', ({ from }) => from],
    ['to_cursor', 'text', ({ to }) => to],
    ['end_claim', 'text', ({ freshness }) => freshness.end],
    ['last_delivered_at', 'timestamptz', ({ freshness }) => freshness.lastDeliveredAt?.toISOString() ?? null],
    ['polled_ms', 'double precision', ({ freshness }) => databaseMs(freshness.polledAt)],
    ['complete_up_to_ms', 'double precision', ({ freshness }) => databaseMs(freshness.completeUpTo)],
    ['sent_ms', 'double precision', () => databaseMs(now)],
  ];
  const errorMs = sql`abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_ms)`;
  return sql`SELECT feed, epoch, holder, from_cursor, to_cursor, end_claim, last_delivered_at,
    to_timestamp((polled_ms - ${errorMs}) / 1000) AS polled_at,
    to_timestamp((complete_up_to_ms - ${errorMs}) / 1000) AS complete_up_to
  FROM ${parameterRows(columns, moves)}
    AS page (${columnList(columns.map(([name]) => name))})`;
}

type FeedMoves = readonly [FeedMove, ...FeedMove[]];
type Column = readonly [name: string, type: string, read: (move: FeedMove) => unknown];

/** A single row has no arrays: PostgreSQL expects ten rows of an array, and would plan the statement each time. */
function parameterRows(columns: readonly Column[], [move, ...others]: FeedMoves) {
  if (others.length === 0) {
    return sql`(VALUES (${sql.join(columns.map(([, type, read]) => sql`${read(move)}::${sql.raw(type)}`))}))`;
  }
  const moves = [move, ...others];
  return sql`unnest(${sql.join(columns.map(([, type, read]) => sql`${moves.map(read)}::${sql.raw(type)}[]`))})`;
}

/**
 * Adds the new cursor to the history, and deletes the oldest ones. Statements that move no cursor do without: at the end of the feed
 * these parts would take half of the time to plan the statement.
 */
function checkpoint(tables: Tables) {
  return sql`
-- Commits that overlap may each add a checkpoint. It has the last delivery of its own page: the feed may have read further before it
-- was rewound.
checkpoint AS (
  INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
  SELECT name, to_cursor, COALESCE(last_delivered_at, delivered_up_to), 'checkpoint'
  FROM held
  WHERE to_cursor IS DISTINCT FROM from_cursor AND COALESCE(abs(extract(epoch FROM clock_timestamp() - ( -- negative if the clock was set back
    SELECT noted_at FROM ${tables.cursorHistory} AS noted WHERE noted.feed = held.name ORDER BY id DESC LIMIT 1
  ))) > 300, true)
  RETURNING feed, id
),

pruned AS (
  ${prunedHistory(tables, sql`checkpoint`)}
),
`;
}

/** `moved`: the new positions of the feeds, and how fresh their data is now. */
function movedFeeds(tables: Tables) {
  return sql`moved AS (
  UPDATE ${tables.feeds} AS feed SET
    cursor = held.to_cursor,
    resume_since = CASE WHEN held.to_cursor IS NULL THEN feed.resume_since END,
    cursor_origin = CASE WHEN held.from_cursor IS NULL THEN gen_random_uuid() ELSE feed.cursor_origin END,
    read_by_time_until = CASE WHEN held.from_cursor IS NULL THEN COALESCE(held.last_delivered_at, clock_timestamp())
      ELSE feed.read_by_time_until END,
    end_reached_at = CASE WHEN ${CLAIMS_END} THEN COALESCE(feed.end_reached_at, clock_timestamp()) ELSE feed.end_reached_at END,
    last_delivered_at = GREATEST(feed.last_delivered_at, held.last_delivered_at),
    delivered_up_to = GREATEST(feed.delivered_up_to, held.last_delivered_at),
    last_poll_at = held.polled_at,
    last_commit_at = clock_timestamp(),
    -- A page that was requested by the time of a rewind proves nothing: it may leave out runs of any delivery time.
    data_complete_as_of = GREATEST(
      CASE WHEN held.from_cursor IS NOT NULL OR feed.resume_since IS NULL
        THEN CASE WHEN ${CLAIMS_END} THEN held.polled_at ELSE held.complete_up_to END END,
      ${STILL_COMPLETE_AS_OF})
  FROM held CROSS JOIN counts
  WHERE feed.name = held.name
  RETURNING feed.name, feed.data_complete_as_of, counts.*, ${CLAIMS_END} AS end_claimed
)

SELECT moved.*, ${freshnessColumns(sql`moved.data_complete_as_of`)} FROM moved`;
}

/** For rows `held` and `counts`: the page is the end of the feed. */
const CLAIMS_END = isEnd(sql`held.end_claim`);

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
