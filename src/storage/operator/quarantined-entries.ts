import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import type { QuarantineState } from '../tables/schema.js';

/** An entry of the quarantine, without its payload. */
export interface QuarantinedEntry {
  readonly id: string;
  readonly state: QuarantineState;
  readonly scanId: string | null;
  readonly revision: number | null;
  readonly reason: string;
  readonly detail: string;
  readonly payloadBytes: number;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly timesSeen: number;
}

/** Creates the access of operators' commands to the quarantine of a feed. */
export function createQuarantinedEntries({ db, tables }: StoreConnection) {
  const entriesOf = (feed: string, state: QuarantineState | null) =>
    sql`${tables.quarantine} WHERE feed = ${feed} AND state = COALESCE(${state}, state)`;
  /** Locks the feed's row first, like every commit: two statements that change several entries must not deadlock. */
  const fence = (feed: string) => sql`
        WITH fence AS MATERIALIZED (SELECT FROM ${tables.feeds} WHERE name = ${feed} FOR NO KEY UPDATE)`;
  return {
    /** Returns the newest entries, newest first; in all states if `state` is null. */
    async list(
      feed: string,
      { state, limit }: { readonly state: QuarantineState | null; readonly limit: number },
    ): Promise<readonly QuarantinedEntry[]> {
      const { rows } = await sql<QuarantinedEntry>`
        SELECT ${ENTRY} FROM ${entriesOf(feed, state)} ORDER BY id DESC LIMIT ${limit}`.execute(db);
      return rows;
    },

    async count(feed: string, state: QuarantineState | null): Promise<number> {
      const { rows } = await sql<{ entries: number }>`
        SELECT count(*)::int AS entries FROM ${entriesOf(feed, state)}`.execute(db);
      return rows[0]?.entries ?? 0;
    },

    /** Returns the entries of the feed with these ids. */
    async find(feed: string, ids: readonly string[]): Promise<readonly QuarantinedEntry[]> {
      const { rows } = await sql<QuarantinedEntry>`
        SELECT ${ENTRY} FROM ${tables.quarantine} WHERE feed = ${feed} AND id = ANY (${ids}::bigint[]) ORDER BY id`.execute(
        db,
      );
      return rows;
    },

    /** Returns the ids of all open entries, oldest first. */
    async openIds(feed: string): Promise<readonly string[]> {
      const { rows } = await sql<{ id: string }>`SELECT id FROM ${entriesOf(feed, 'open')} ORDER BY id`.execute(db);
      return rows.map(({ id }) => id);
    },

    /** Returns the bytes of the entry as received; undefined if there is no such entry. */
    async readPayload(feed: string, id: string): Promise<Uint8Array | undefined> {
      const { rows } = await sql<{ payload: Buffer }>`
        SELECT payload FROM ${tables.quarantine} WHERE feed = ${feed} AND id = ${id}::bigint`.execute(db);
      return rows[0]?.payload;
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
      const { rows } = await sql<{ until: Date | null }>`
        UPDATE ${tables.feeds}
        SET accepts_bad_until = clock_timestamp() + ${forMs}::double precision * interval '1 millisecond'
        WHERE name = ${feed} RETURNING accepts_bad_until AS until`.execute(db);
      return rows[0]?.until ?? null;
    },

    /** Records that the run of an entry is stored: from this entry (`replayed`), or in a newer revision (`discarded`). */
    async settle(feed: string, id: string, state: 'replayed' | 'discarded'): Promise<void> {
      await sql`${fence(feed)}
        UPDATE ${tables.quarantine} SET state = ${state}
        WHERE EXISTS (SELECT FROM fence) AND feed = ${feed} AND id = ${id}::bigint AND state <> ${state}`.execute(db);
    },
  };
}

const ENTRY = sql`id, state, scan_id AS "scanId", revision, reason, detail, octet_length(payload) AS "payloadBytes",
          first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt", times_seen AS "timesSeen"`;
