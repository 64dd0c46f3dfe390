import { sql } from 'kysely';
import { anyOf, type StoreConnection } from '../connection/store-connection.js';
import type { QuarantineState } from '../tables/schema.js';

/** An entry of the quarantine, without its payload. */
export type QuarantinedEntry = Awaited<ReturnType<ReturnType<typeof createQuarantinedEntries>['list']>>[number];

/** Creates the access of operators' commands to the quarantine of a feed. */
export function createQuarantinedEntries({ db, tables }: StoreConnection) {
  const entriesOf = (feed: string, state: QuarantineState | null) => {
    const entries = db.selectFrom('quarantine').where('feed', '=', feed);
    return state === null ? entries : entries.where('state', '=', state);
  };
  /** Locks the feed's row first, like every commit: two statements that change several entries must not deadlock. */
  const fence = (feed: string) => sql`
        WITH fence AS MATERIALIZED (SELECT FROM ${tables.feeds} WHERE name = ${feed} FOR NO KEY UPDATE)`;
  return {
    /** Returns the newest entries, newest first; in all states if `state` is null. */
    list: (feed: string, { state, limit }: { readonly state: QuarantineState | null; readonly limit: number }) =>
      entriesOf(feed, state).select(ENTRY).orderBy('id', 'desc').limit(limit).execute(),

    async count(feed: string, state: QuarantineState | null): Promise<number> {
      const { entries } = await entriesOf(feed, state)
        .select(({ fn }) => fn.countAll().as('entries'))
        .executeTakeFirstOrThrow();
      return Number(entries);
    },

    /** Returns the entries of the feed with these ids. */
    find: (feed: string, ids: readonly string[]) =>
      entriesOf(feed, null).where('id', '=', anyOf(ids)).select(ENTRY).orderBy('id').execute(),

    /** Returns the ids of all open entries, oldest first. */
    async openIds(feed: string): Promise<readonly string[]> {
      const rows = await entriesOf(feed, 'open').select('id').orderBy('id').execute();
      return rows.map(({ id }) => id);
    },

    /** Returns the bytes of the entry as received; undefined if there is no such entry. */
    async readPayload(feed: string, id: string): Promise<Uint8Array | undefined> {
      const entry = await entriesOf(feed, null).where('id', '=', id).select('payload').executeTakeFirst();
      return entry?.payload;
    },

    /** Discards the open ones among these entries. Returns the ids of the discarded ones. */
    async discard(feed: string, ids: readonly string[]): Promise<readonly string[]> {
      const { rows } = await sql<{ id: string }>`${fence(feed)}
        UPDATE ${tables.quarantine} SET state = 'discarded'
        WHERE EXISTS (SELECT FROM fence) AND feed = ${feed} AND state = 'open' AND id = ANY (${ids}::bigint[])
        RETURNING id`.execute(db);
      return rows.map(({ id }) => id);
    },

    /**
     * Accepts for this time, by the clock of the database, that most entries of the feed are unusable; null: no longer. Returns the
     * end.
     */
    async accept(feed: string, forMs: number | null): Promise<Date | null> {
      const row = await db
        .updateTable('feeds')
        .set({ accepts_bad_until: sql`clock_timestamp() + ${forMs}::double precision * interval '1 millisecond'` })
        .where('name', '=', feed)
        .returning('accepts_bad_until as until')
        .executeTakeFirst();
      return row?.until ?? null;
    },

    /** Records that the run of an entry is stored: from this entry (`replayed`), or in a newer revision (`discarded`). */
    async settle(feed: string, id: string, state: 'replayed' | 'discarded'): Promise<void> {
      await sql`${fence(feed)}
        UPDATE ${tables.quarantine} SET state = ${state}
        WHERE EXISTS (SELECT FROM fence) AND feed = ${feed} AND id = ${id}::bigint AND state <> ${state}`.execute(db);
    },
  };
}

const ENTRY = [
  'id',
  'state',
  'scan_id as scanId',
  'revision',
  'reason',
  'detail',
  sql<number>`octet_length(payload)`.as('payloadBytes'),
  'first_seen_at as firstSeenAt',
  'last_seen_at as lastSeenAt',
  'times_seen as timesSeen',
] as const;
