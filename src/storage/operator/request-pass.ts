import { sql } from 'kysely';
import { RECENT_PASS_OVERLAP_MS } from '../../core/recent-pass.js';
import type { Pass, PassKind } from '../../sync/ports/index.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { completedUntil, hasCaughtUpSinceWidening, historyIsUnfinished, prunePasses } from '../passes/passes.js';

/** A pass, as commands show it. */
export interface RequestedPass extends Omit<Pass, 'cursor'> {
  readonly entriesPerSecond: number | null;
  readonly secondsLeft: number | null;
  /** Milliseconds since its last page, by the clock of the database; null: it has no page yet. */
  readonly idleMs: number | null;
  readonly finishedAt: Date | null;
  readonly cancelled: boolean;
}

/** `joined`: an unfinished pass was joined. */
export type PassRequest = RequestedPass & { readonly joined: boolean };

/** The range of a requested pass: delivery times, service clock. */
export interface PassRange {
  /** Null: from the beginning of the history. */
  readonly since: Date | null;
  /** Null: up to now. */
  readonly until: Date | null;
}

/** Creates the access of operators' commands to passes. */
export function createPassRequests({ db, tables }: StoreConnection) {
  /** Returns a pass; undefined if it no longer exists. */
  const find = async (id: string): Promise<RequestedPass | undefined> => {
    const { rows } = await sql<RequestedPass>`SELECT ${PASS} FROM ${tables.passes} WHERE id = ${id}::bigint`.execute(
      db,
    );
    return rows[0];
  };

  /** Cancels the unfinished passes of these kinds, and returns them in the order of their beginning. The runs that they have stored remain. */
  const cancel = async (feed: string, kinds: readonly PassKind[]): Promise<readonly RequestedPass[]> => {
    const { rows } = await sql<RequestedPass>`
      WITH ended AS (
        UPDATE ${tables.passes} SET finished_at = clock_timestamp(), cancelled = true
        WHERE feed = ${feed} AND kind = ANY (${kinds}::text[]) AND finished_at IS NULL
        RETURNING *
      )
      SELECT ${PASS} FROM ended ORDER BY id`.execute(db);
    return rows;
  };

  return {
    find,
    cancel,

    /**
     * Requests a backfill. Without `until` it ends at the later of the database's clock and the last delivery. If an unfinished
     * backfill begins no later and reaches the beginning of this one, it is joined: it continues with the later end. So the same
     * request made twice results in one pass.
     */
    async requestBackfill(feed: string, { since, until }: PassRange): Promise<PassRequest> {
      const from = timestamp(since);
      const { rows } = await sql<PassRequest>`
        WITH wanted AS (
          SELECT name, filters_widened_at, date_trunc('milliseconds', COALESCE(${timestamp(until)},
            GREATEST(clock_timestamp(), last_delivered_at))) AS until
          FROM ${tables.feeds} WHERE name = ${feed}
        ),
        joined AS (
          UPDATE ${tables.passes} AS pass SET until = GREATEST(pass.until, wanted.until)
          FROM wanted
          WHERE finished_at IS NULL AND id = (
            SELECT min(id) FROM ${tables.passes} AS earlier
            WHERE earlier.feed = wanted.name AND kind = 'backfill' AND finished_at IS NULL
              AND COALESCE(since, '-infinity') <= COALESCE(${from}, '-infinity')
              AND COALESCE(${from}, '-infinity') <= earlier.until
              AND begun_at > COALESCE(filters_widened_at, '-infinity'))
          RETURNING pass.*
        ),
        begun AS (
          INSERT INTO ${tables.passes} (feed, kind, since, until)
          SELECT name, 'backfill', ${from}, until FROM wanted WHERE NOT EXISTS (SELECT FROM joined)
          RETURNING *
        )
        SELECT ${PASS}, true AS joined FROM joined UNION ALL SELECT ${PASS}, false FROM begun`.execute(db);
      const [pass] = rows;
      if (pass === undefined) throw new Error(`there is no feed ${feed}`);
      return pass;
    },

    /**
     * Requests a recent pass, which replaces an unfinished one because that has read too early; or a full pass, which joins an
     * unfinished one to keep what it has read. Without `until` it ends where the feed is complete, by the later of the database's
     * clock and the last delivery: a late end finds only what the cursor finds anyway, an early one would miss runs. A pass with
     * `until`, or one that begins after the end of the last completed pass, leaves a gap and does not change the freshness.
     * @param kind a full pass reads from the start of the feed, whatever the range
     * @param since delivery time; or milliseconds before its end, in which case it begins early enough to leave no gap
     * @returns undefined while the feed has not reached its end; for a full pass also while the history is unfinished, or the
     *   feed has not caught up since its filters were widened
     */
    requestReconciliation(
      feed: string,
      kind: 'recent' | 'full',
      { since, until }: { readonly since: Date | number; readonly until: Date | null },
    ): Promise<PassRequest | undefined> {
      const end = sql`LEAST(${timestamp(until)}, ${COMPLETE_TO})`;
      const completed = completedUntil(tables, feed, kind);
      const from =
        typeof since === 'number'
          ? sql`LEAST(${end} - ${since} * interval '1 millisecond', ${completed} - ${RECENT_PASS_OVERLAP_MS} * interval '1 millisecond')`
          : timestamp(since);
      const leavesNoGap = kind === 'full' ? sql`true` : sql`${from} <= COALESCE(${completed}, 'infinity')`;
      return db.transaction().execute(async (tx) => {
        // Releases the feed's row soon if this process is paused or cut off.
        await sql`SET LOCAL idle_in_transaction_session_timeout = '5s'`.execute(tx);
        // The leader cannot begin a pass while the row is locked.
        const { rows: ready } = await sql`
          SELECT FROM ${tables.feeds} AS feed
          WHERE name = ${feed} AND data_complete_as_of IS NOT NULL AND end_reached_at IS NOT NULL
            AND (${kind === 'recent'} OR NOT ${historyIsUnfinished(tables)} AND ${hasCaughtUpSinceWidening(sql`feed.data_complete_as_of`)})
          FOR NO KEY UPDATE`.execute(tx);
        if (ready.length === 0) return undefined;
        const { rows: unfinished } = await sql<PassRequest>`
          SELECT ${PASS}, true AS joined FROM ${tables.passes}
          WHERE ${kind === 'full'} AND feed = ${feed} AND kind = 'full' AND finished_at IS NULL
            AND begun_at > (SELECT COALESCE(filters_widened_at, '-infinity') FROM ${tables.feeds} WHERE name = ${feed})`.execute(
          tx,
        );
        if (unfinished.length > 0) return unfinished[0];
        await createPassRequests({ db: tx, tables }).cancel(feed, [kind]);
        await prunePasses({ db: tx, tables }, feed, kind);
        const { rows: begun } = await sql<PassRequest>`
          INSERT INTO ${tables.passes} (feed, kind, since, until, complete_as_of)
          SELECT name, ${kind}, GREATEST(${kind === 'full' ? sql`NULL` : from}, start_since), ${end},
            CASE WHEN ${until === null} AND ${leavesNoGap} THEN data_complete_as_of END
          FROM ${tables.feeds} WHERE name = ${feed}
          RETURNING ${PASS}, false AS joined`.execute(tx);
        return begun[0];
      });
    },
  };
}

/** Whole milliseconds, rounded up. */
const COMPLETE_TO = sql`date_trunc('milliseconds', GREATEST(data_complete_as_of, last_delivered_at)) + interval '1 ms'`;

const PASS = sql`id, kind, since, until, begun_at AS "begunAt", delivered_up_to AS "deliveredUpTo",
          entries::double precision, stored::double precision, entries_per_second AS "entriesPerSecond",
          seconds_left AS "secondsLeft", finished_at AS "finishedAt", cancelled,
          extract(epoch FROM clock_timestamp() - last_commit_at)::double precision * 1000 AS "idleMs"`;
