import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { IS_RETRIED } from '../runs/pending.js';
import { leader } from '../tables/lease-columns.js';

/** Time without a leader and without a commit after which a feed counts as retired: longer than a restart of its process takes. */
const RETIRED_AFTER = sql.lit('10 minutes');

/** Maximum number of runs that one transaction hands over: commits of all feeds wait until it has ended. */
const RUNS_PER_BATCH = 2_000;

/** The rows of other tables that name a feed. */
export interface Belongings {
  readonly runs: number;
  /** Results that are still retried. */
  readonly pendingResults: number;
  /** Open entries of the quarantine. */
  readonly openEntries: number;
}

/** Counts what belongs to a feed, which may be missing from `feeds`. */
export async function countBelongings({ db, tables }: StoreConnection, feed: string): Promise<Belongings> {
  const { rows } = await sql<Belongings>`
    SELECT count(*)::int AS runs,
      (count(*) FILTER (WHERE result_state = 'pending' AND ${IS_RETRIED}))::int AS "pendingResults",
      (SELECT count(*)::int FROM ${tables.quarantine} WHERE feed = ${feed} AND state = 'open') AS "openEntries"
    FROM ${tables.runs} WHERE feed = ${feed}`.execute(db);
  return rows[0] as Belongings;
}

/**
 * Hands the runs of a feed over in batches, then deletes the feed with its positions, passes and errors. Returns false, and keeps the
 * feed, if a process holds its lease or there is no feed `to`.
 * @param to the feed that its runs and its quarantine belong to afterwards; null: they keep the name of the feed
 * @param onRuns called with the number of runs that are handed over
 */
export async function forgetFeed(
  { db, tables }: StoreConnection,
  feed: string,
  to: string | null,
  onRuns: (runs: number) => void = () => {},
): Promise<boolean> {
  /** Runs work in a transaction during which no process can take the lease of the feed. */
  const whileRetired = (work: (tx: typeof db) => Promise<unknown>) =>
    db.transaction().execute(async (tx) => {
      // In the order of every other writer: feeds, quarantine, the clock, runs.
      const { rows } = await sql<{ name: string; leader: string | null }>`
        SELECT name, ${leader(tables)} AS leader FROM ${tables.feeds} AS feed WHERE name IN (${feed}, ${to}) ORDER BY name
        FOR UPDATE`.execute(tx);
      if (rows.some(({ name, leader }) => name === feed && leader !== null)) return false;
      if (to !== null && !rows.some(({ name }) => name === to)) return false;
      await work(tx);
      return true;
    });
  for (let [last, runs, isMore] = ['', 0, to !== null]; isMore; ) {
    // Without locks: it takes long if few of all runs are of this feed.
    const found = await sql<{ scan_id: string }>`
      SELECT scan_id FROM ${tables.runs} WHERE feed = ${feed} AND scan_id > ${last} ORDER BY scan_id
      LIMIT ${RUNS_PER_BATCH}`.execute(db);
    const ids = found.rows.map(({ scan_id }) => scan_id);
    const isHandedOver = await whileRetired(async (tx) => {
      await sql`SELECT ${tables.lockChangeClock}`.execute(tx);
      await sql`
        UPDATE ${tables.runs} SET feed = ${to}, synced_at = statement_timestamp(), change_seq = ${tables.nextChange}
        WHERE scan_id = ANY (${ids}) AND feed = ${feed}`.execute(tx);
    });
    if (!isHandedOver) return false;
    [last, runs, isMore] = [ids.at(-1) ?? '', runs + ids.length, ids.length === RUNS_PER_BATCH];
    onRuns(runs);
  }
  return whileRetired(async (tx) => {
    if (to !== null) {
      // Of an entry that both feeds have, one row is kept: an open one instead of a discarded one.
      await sql`
        DELETE FROM ${tables.quarantine} USING ${tables.quarantine} AS own, ${tables.quarantine} AS other
        WHERE own.feed = ${feed} AND other.feed = ${to} AND own.identity = other.identity AND quarantine.id =
          CASE WHEN own.state = 'open' AND other.state = 'discarded' THEN other.id ELSE own.id END`.execute(tx);
      await sql`UPDATE ${tables.quarantine} SET feed = ${to} WHERE feed = ${feed}`.execute(tx);
    }
    await sql`DELETE FROM ${tables.feeds} WHERE name = ${feed}`.execute(tx); // a trigger deletes its positions
  });
}

/** What nobody works on: no process leads the feed. */
export interface Orphaned extends Omit<Belongings, 'runs'> {
  readonly feed: string;
}

/** Returns the feeds without a leader, known or forgotten, that have pending results or open entries in quarantine. */
export async function findOrphaned({ db, tables }: StoreConnection): Promise<readonly Orphaned[]> {
  const { rows } = await sql<Orphaned>`
    SELECT feed, sum(pending)::int AS "pendingResults", sum(open)::int AS "openEntries" FROM (
      SELECT feed, 1 AS pending, 0 AS open FROM ${tables.runs} WHERE result_state = 'pending' AND ${IS_RETRIED}
      UNION ALL SELECT feed, 0, 1 FROM ${tables.quarantine} WHERE state = 'open') AS unfinished
    WHERE feed NOT IN (
      SELECT name FROM ${tables.feeds} AS feed WHERE ${leader(tables)} IS NOT NULL
        OR GREATEST(last_commit_at, created_at) > clock_timestamp() - interval ${RETIRED_AFTER})
    GROUP BY feed ORDER BY feed`.execute(db);
  return rows;
}
