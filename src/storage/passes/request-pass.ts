import { type Selectable, sql } from 'kysely';
import type { Pass, PassKind } from '../../sync/ports/index.js';
import { anyOf, type StoreConnection, timestamp } from '../connection/store-connection.js';
import type { ScanfeedSchema, Tables } from '../schema/schema.js';
import { completedUntil, hasCaughtUpSinceWidening, historyIsUnfinished, prunePasses } from './passes.js';

/** A pass that a person requested, or that is shown to one. */
export interface RequestedPass extends Omit<Pass, 'cursor'> {
  readonly begunAt: Date;
  readonly entriesPerSecond: number | null;
  readonly secondsLeft: number | null;
  /** Milliseconds since its last page, by the database's clock; null: it has none yet. */
  readonly idleMs: number | null;
  readonly finishedAt: Date | null;
  readonly cancelled: boolean;
}

/** `joined`: it was under way already. */
export type PassRequest = RequestedPass & { readonly joined: boolean };

/** The range of a requested pass, delivery times of the service's clock. */
export interface PassRange {
  /** Null: from the beginning of the history. */
  readonly since: Date | null;
  /** Null: up to now. */
  readonly until: Date | null;
}

/** Passes, as operators' commands request and cancel them. */
export function createPassRequests({ db, tables }: StoreConnection) {
  /** Undefined if it does not exist any more. */
  const find = (id: string): Promise<RequestedPass | undefined> =>
    db.selectFrom('passes').where('id', '=', id).select(PASS).executeTakeFirst();

  /** Ends the unfinished passes of these kinds before their end. What they have stored stays. */
  const cancel = (feed: string, kinds: readonly PassKind[]): Promise<readonly RequestedPass[]> =>
    db
      .updateTable('passes')
      .set({ finished_at: sql`clock_timestamp()`, cancelled: true })
      .where('feed', '=', feed)
      .where('kind', '=', anyOf(kinds))
      .where('finished_at', 'is', null)
      .returning(PASS)
      .execute();

  return {
    find,
    cancel,

    /**
     * Requests a backfill, up to the later of the database's clock and the last delivery at most. An unfinished one that
     * begins no later and reaches the beginning of this one is joined: it continues, and its end moves out. So the same
     * request made twice is one.
     */
    async requestBackfill(feed: string, { since, until }: PassRange): Promise<PassRequest> {
      const from = timestamp(since);
      const pass = await db
        .with(
          'wanted',
          () => sql`(
            SELECT name, filters_widened_at, date_trunc('milliseconds', COALESCE(${timestamp(until)},
              GREATEST(clock_timestamp(), last_delivered_at))) AS until
            FROM ${tables.feeds} WHERE name = ${feed})`,
        )
        .with(
          'joined',
          () => sql<Selectable<ScanfeedSchema['passes']>>`(
            UPDATE ${tables.passes} AS pass SET until = GREATEST(pass.until, wanted.until)
            FROM wanted
            WHERE finished_at IS NULL AND id = (
              SELECT min(id) FROM ${tables.passes} AS earlier
              WHERE earlier.feed = wanted.name AND kind = 'backfill' AND finished_at IS NULL
                AND COALESCE(since, '-infinity') <= COALESCE(${from}, '-infinity')
                AND COALESCE(${from}, '-infinity') <= earlier.until
                AND begun_at > COALESCE(filters_widened_at, '-infinity'))
            RETURNING pass.*)`,
        )
        .with(
          'begun',
          () => sql<Selectable<ScanfeedSchema['passes']>>`(
            INSERT INTO ${tables.passes} (feed, kind, since, until)
            SELECT name, 'backfill', ${from}, until FROM wanted WHERE NOT EXISTS (SELECT FROM joined)
            RETURNING *)`,
        )
        .selectFrom('joined')
        .select([...PASS, sql<boolean>`true`.as('joined')])
        .unionAll(({ selectFrom }) => selectFrom('begun').select([...PASS, sql<boolean>`false`.as('joined')]))
        .executeTakeFirst();
      if (pass === undefined) throw new Error(`there is no feed ${feed}`);
      return pass;
    },

    /**
     * Requests a recent pass, in place of an unfinished one, which has read too early; or a full pass, which joins an
     * unfinished one, so that what that has read is not thrown away. Without `until` it reads up to what the feed is complete
     * to, by the later of the database's clock and the last delivery: reading too far finds what the cursor would have found,
     * reading too short would miss something. A pass with `until`, or one that begins after the last completed pass ended,
     * leaves a gap: it claims nothing about freshness.
     * @param kind a full pass reads from the start of the feed, whatever the range
     * @param since delivery time; or milliseconds before its end, and then it begins early enough to leave no gap
     * @returns undefined while the feed has not reached its end; for a full pass also while the history is unfinished, or the
     *   feed has not caught up since its filters widened
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
          ? sql`LEAST(${end} - ${since} * interval '1 millisecond', ${completed} - interval ${OVERLAP})`
          : timestamp(since);
      const leavesNoGap = kind === 'full' ? sql`true` : sql`${from} <= COALESCE(${completed}, 'infinity')`;
      return db.transaction().execute(async (tx) => {
        // If this process is frozen or cut off meanwhile, the feed's row is free again soon.
        await sql`SET LOCAL idle_in_transaction_session_timeout = '5s'`.execute(tx);
        // Its leader begins no pass while the row is locked.
        const { rows: ready } = await sql`
          SELECT FROM ${tables.feeds} AS feed
          WHERE name = ${feed} AND data_complete_as_of IS NOT NULL AND end_reached_at IS NOT NULL
            AND (${kind === 'recent'} OR NOT ${historyIsUnfinished(tables)} AND ${hasCaughtUpSinceWidening(sql`feed`)})
          FOR NO KEY UPDATE`.execute(tx);
        if (ready.length === 0) return undefined;
        const joined = kind === 'full' ? await findPresentFullPass(tx, tables, feed) : undefined;
        if (joined !== undefined) return { ...joined, joined: true };
        await createPassRequests({ db: tx, tables }).cancel(feed, [kind]);
        await prunePasses(tx, feed, kind);
        return tx
          .insertInto('passes')
          .columns(['feed', 'kind', 'since', 'until', 'complete_as_of'])
          .expression(sql`
            SELECT name, ${kind}, GREATEST(${kind === 'full' ? sql`NULL` : from}, start_since), ${end},
              CASE WHEN ${until === null} AND ${leavesNoGap} THEN data_complete_as_of END
            FROM ${tables.feeds} WHERE name = ${feed}`)
          .returning([...PASS, sql<boolean>`false`.as('joined')])
          .executeTakeFirst();
      });
    },
  };
}

/** An unfinished full pass that began after the filters were widened last. */
function findPresentFullPass(tx: StoreConnection['db'], tables: Tables, feed: string) {
  const filtersWidenedAt = sql<Date>`(SELECT COALESCE(filters_widened_at, '-infinity') FROM ${tables.feeds} WHERE name = ${feed})`;
  return tx
    .selectFrom('passes')
    .where('feed', '=', feed)
    .where('kind', '=', 'full')
    .where('finished_at', 'is', null)
    .where('begun_at', '>', filtersWidenedAt)
    .select(PASS)
    .executeTakeFirst();
}

/** A recent pass begins this much before the last one ended, whichever time the service understands by `since`. */
const OVERLAP = sql.lit('10 minutes');

/** Whole milliseconds, rounded up. */
const COMPLETE_TO = sql`date_trunc('milliseconds', GREATEST(data_complete_as_of, last_delivered_at)) + interval '1 ms'`;

const PASS = [
  'id',
  'kind',
  'since',
  'until',
  'begun_at as begunAt',
  'delivered_up_to as deliveredUpTo',
  sql<number>`entries::double precision`.as('entries'),
  sql<number>`stored::double precision`.as('stored'),
  'entries_per_second as entriesPerSecond',
  'seconds_left as secondsLeft',
  sql<number | null>`extract(epoch FROM clock_timestamp() - last_commit_at)::double precision * 1000`.as('idleMs'),
  'finished_at as finishedAt',
  'cancelled',
] as const;
