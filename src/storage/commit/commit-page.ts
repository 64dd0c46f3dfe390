import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import type { CommitOutcome, CommitStore, LeaseGrant, PageCommit, PageContent } from '../../sync/ports/index.js';
import { batchCalls } from '../connection/batch-calls.js';
import { DatabaseError, OVERTAKEN, sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { isHeld, leasesIn, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';
import type { Tables } from '../tables/schema.js';
import { type CommitRow, type CommitSettings, isEnd, lag } from './commit-row.js';
import { storedEntries } from './entries.js';
import { passPage } from './pass-page.js';
import { prunedHistory } from './position.js';

/**
 * Creates the commits of the store. Each is one statement, so that no error inside it can be swallowed and an unknown outcome
 * leaves either everything or nothing. `test/storage/commit/statements/feed-page.sql` is that of a page as PostgreSQL receives it.
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
  const commitPages = async (pages: PageCommits) => {
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

/** Minimum interval between two checkpoints in the history of cursors. Two commits that overlap may each add one. */
const CHECKPOINT_INTERVAL = sql.lit('5 minutes');

/** One page; or several without entries, each of another feed. */
type PageCommits = readonly [PageCommit, ...PageCommit[]];

/**
 * Commits a page of the feed with its cursor and what it proves about freshness. A feed without a row in the response is fenced:
 * another process took its lease or moved its cursor.
 *
 * `locked` waits for the commit before. The cursor is compared only afterwards, in `held`: a condition in `locked` would first be
 * applied to the row of the statement's snapshot, and would not match.
 *
 * Variants: several feeds at once wait for no other writer, which would delay all of them and could deadlock, so a feed whose row is
 * locked has no row in the response either. At rest the cursor does not move, and half of the statement, and of the time to plan it,
 * is not needed.
 * @param now monotonic milliseconds, read right before the statement is sent
 */
function feedPage(tables: Tables, settings: CommitSettings, pages: PageCommits, now: number) {
  const [page] = pages;
  return sql<CommitRow>`
WITH sent AS MATERIALIZED (
  ${sentPages(pages, settings, now)}
),
locked AS MATERIALIZED (
  SELECT feed.name, feed.cursor, feed.delivered_up_to
  FROM ${tables.feeds} AS feed JOIN sent ON ${isHeld(leasesIn('sent'))}
  FOR NO KEY UPDATE OF feed ${pages.length > 1 ? sql`SKIP LOCKED` : sql``}
),
held AS (
  SELECT sent.*, locked.name, locked.delivered_up_to, 'feed' AS stored_by
  FROM sent JOIN locked ON locked.name = sent.feed AND locked.cursor IS NOT DISTINCT FROM sent.from_cursor
),
${storedEntries(tables, settings, page.lease.feed, page)},
${pages.some(({ from, to }) => from !== to) ? checkpoint(tables) : sql``}
moved AS (
  UPDATE ${tables.feeds} AS feed SET
    cursor = held.to_cursor,
    resume_since = CASE WHEN held.to_cursor IS NULL THEN feed.resume_since END,
    cursor_origin = CASE WHEN held.from_cursor IS NULL THEN gen_random_uuid() ELSE feed.cursor_origin END,
    end_reached_at = CASE WHEN ${AT_END} THEN COALESCE(feed.end_reached_at, clock_timestamp()) ELSE feed.end_reached_at END,
    last_delivered_at = GREATEST(feed.last_delivered_at, held.last_delivered_at),
    delivered_up_to = GREATEST(feed.delivered_up_to, held.last_delivered_at),
    last_poll_at = held.polled_at,
    last_commit_at = clock_timestamp(),
    data_complete_as_of = GREATEST(${COMPLETE_AS_OF}, ${STILL_COMPLETE_AS_OF})
  FROM held CROSS JOIN counts
  WHERE feed.name = held.name
  RETURNING feed.name, feed.data_complete_as_of, counts.*, ${AT_END} AS end_claimed
)

SELECT moved.*, ${lag(sql`moved.data_complete_as_of`)} FROM moved`;
}

/**
 * Parts of the statement: add the new cursor to the history, and delete the oldest ones. A checkpoint has the last delivery of its
 * own page: the feed may have read further before it was rewound.
 */
function checkpoint(tables: Tables): RawBuilder<unknown> {
  return sql`
checkpoint AS (
  INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
  SELECT name, to_cursor, COALESCE(last_delivered_at, delivered_up_to), 'checkpoint'
  FROM held
  WHERE to_cursor IS DISTINCT FROM from_cursor AND COALESCE(
    (SELECT noted_at FROM ${tables.cursorHistory} AS noted WHERE noted.feed = held.name ORDER BY id DESC LIMIT 1), '-infinity'
  ) < clock_timestamp() - interval ${CHECKPOINT_INTERVAL}
  RETURNING feed, id
),
pruned AS (
  ${prunedHistory(tables, sql`checkpoint`)}
),`;
}

/** For rows `held` and `counts`: the page is the end of the feed. */
const AT_END = isEnd(sql`held.end_claim`);

/**
 * For rows `held`, `counts` and `feed`: the time up to which the page proves the data to be complete. A page that was requested by the time of
 * a rewind proves nothing: it may leave out runs of any delivery time.
 */
const COMPLETE_AS_OF = sql`CASE WHEN held.from_cursor IS NOT NULL OR feed.resume_since IS NULL
      THEN CASE WHEN ${AT_END} THEN held.polled_at ELSE held.delivered_at END END`;

/**
 * Returns rows of positions and what their pages prove about freshness; a page that proves no delivery leaves those columns null. At
 * the end of the feed, the data is complete up to the time the poll was sent; before it, up to the delivery that the page proves.
 * Neither time is later than it really was by the database's clock, however long the statement takes to arrive. So both are
 * derived from an earlier response of the database (database-clock.ts). The same response predicts the time at which the statement
 * arrives. The difference from the real time, in either direction, is subtracted: it is the time that the statement was on the way,
 * or by how much the clock was set back. Without an earlier response, nothing is claimed.
 */
function sentPages(pages: PageCommits, { databaseClock }: CommitSettings, now: number): RawBuilder<unknown> {
  const reachedAt = (instant: number | null) => (instant === null ? null : databaseClock.reachedAt(instant));
  const columns: readonly Column[] = [
    ['feed', 'text', ({ lease }) => lease.feed],
    ['epoch', 'bigint', ({ lease }) => lease.epoch],
    ['holder', 'text', ({ lease }) => lease.holder],
    ['from_cursor', 'text', ({ from }) => from],
    ['to_cursor', 'text', ({ to }) => to],
    ['end_claim', 'text', ({ freshness }) => freshness.end],
    ['last_delivered_at', 'timestamptz', ({ freshness }) => freshness.lastDeliveredAt?.toISOString() ?? null],
    ['polled_reached', 'double precision', ({ freshness }) => reachedAt(freshness.polledAt)],
    ['delivered_reached', 'double precision', ({ freshness }) => reachedAt(freshness.completeUpTo)],
    ['sent_reached', 'double precision', () => reachedAt(now)],
  ];
  const dated = (instant: string) => sql`to_timestamp((${sql.id(`${instant}_reached`)}
      - abs(extract(epoch FROM transaction_timestamp())::double precision * 1000 - sent_reached)) / 1000)`;
  return sql`SELECT feed, epoch, holder, from_cursor, to_cursor, end_claim, last_delivered_at,
    ${dated('polled')} AS polled_at, ${dated('delivered')} AS delivered_at
  FROM ${pageRows(columns, pages)} AS page (${sql.join(columns.map(([name]) => sql.id(name)))})`;
}

type Column = readonly [name: string, type: string, read: (page: PageCommit) => unknown];

/** A single row has no arrays: PostgreSQL expects ten rows of an array and would plan the statement each time. */
function pageRows(columns: readonly Column[], pages: PageCommits): RawBuilder<unknown> {
  const [page, ...others] = pages;
  if (others.length === 0) {
    return sql`(VALUES (${sql.join(columns.map(([, type, read]) => sql`${read(page)}::${sql.raw(type)}`))}))`;
  }
  return sql`unnest(${sql.join(columns.map(([, type, read]) => sql`${pages.map(read)}::${sql.raw(type)}[]`))})`;
}

/** Commits entries without a position: results that were loaded on their own, and trials of entries that are rolled back. */
function loadedResult(
  tables: Tables,
  settings: CommitSettings,
  lease: LeaseGrant,
  content: PageContent,
): RawBuilder<CommitRow> {
  return sql<CommitRow>`
WITH held AS MATERIALIZED (
  SELECT feed.name, feed.data_complete_as_of, 'result' AS stored_by
  FROM ${tables.feeds} AS feed WHERE ${isHeld(lease)} FOR NO KEY UPDATE
),
${storedEntries(tables, settings, lease.feed, content)}

SELECT held.name, counts.*, false AS end_claimed, held.data_complete_as_of,
  ${lag(sql`held.data_complete_as_of`)}
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
