import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

export const QUARANTINE_STATES = ['open', 'repaired', 'replayed', 'discarded'] as const;
export type QuarantineState = (typeof QUARANTINE_STATES)[number];

/** An entry of the quarantine, without its payload. */
export interface QuarantinedEntry {
  /** A bigint as text. */
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

const COLUMNS = sql`id::text, state, scan_id AS "scanId", revision, reason, detail,
      octet_length(payload) AS "payloadBytes",
      first_seen_at AS "firstSeenAt", last_seen_at AS "lastSeenAt", times_seen AS "timesSeen"`;

/** The newest entries of a feed, newest first; of all states where `state` is null. */
export async function listQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  { state, limit }: { readonly state: QuarantineState | null; readonly limit: number },
): Promise<readonly QuarantinedEntry[]> {
  const { rows } = await sql<QuarantinedEntry>`
    SELECT ${COLUMNS} FROM ${tables.quarantine} AS entry
    WHERE feed = ${feed} AND (${state}::text IS NULL OR state = ${state})
    ORDER BY entry.id DESC LIMIT ${limit}`.execute(db);
  return rows;
}

export async function countQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  state: QuarantineState | null,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM ${tables.quarantine}
    WHERE feed = ${feed} AND (${state}::text IS NULL OR state = ${state})`.execute(db);
  return rows[0]?.count ?? 0;
}

/** Those of the ids that are entries of the feed. */
export async function findQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  ids: readonly string[],
): Promise<readonly QuarantinedEntry[]> {
  const { rows } = await sql<QuarantinedEntry>`
    SELECT ${COLUMNS} FROM ${tables.quarantine} AS entry
    WHERE feed = ${feed} AND id = ANY (${ids}::bigint[]) ORDER BY entry.id`.execute(db);
  return rows;
}

/** Ids of all open entries of a feed, oldest first. */
export async function openQuarantineIds(db: Kysely<unknown>, tables: Tables, feed: string): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    SELECT id::text FROM ${tables.quarantine} AS entry
    WHERE feed = ${feed} AND state = 'open' ORDER BY entry.id`.execute(db);
  return rows.map(({ id }) => id);
}

/** The entry's bytes as received; null where there is none. */
export async function readPayload(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  id: string,
): Promise<Uint8Array | null> {
  const { rows } = await sql<{ payload: Uint8Array }>`
    SELECT payload FROM ${tables.quarantine} WHERE feed = ${feed} AND id = ${id}::bigint`.execute(db);
  return rows[0]?.payload ?? null;
}

/** First locks the feed's row, as every commit does: two that change several entries must not wait for each other. */
function fenced(tables: Tables, feed: string) {
  return sql`WITH fence AS MATERIALIZED (SELECT FROM ${tables.feeds} WHERE name = ${feed} FOR NO KEY UPDATE)`;
}

/** Discards those of the ids that are open; the ids it discarded. */
export async function discardQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    ${fenced(tables, feed)}
    UPDATE ${tables.quarantine} SET state = 'discarded'
    WHERE EXISTS (SELECT FROM fence) AND feed = ${feed} AND state = 'open' AND id = ANY (${ids}::bigint[]) RETURNING id::text`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

/** Notes that an entry's run is stored: by it (`replayed`), or in a newer revision (`discarded`). */
export async function settleQuarantined(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  id: string,
  state: 'replayed' | 'discarded',
): Promise<void> {
  await sql`
    ${fenced(tables, feed)}
    UPDATE ${tables.quarantine} SET state = ${state}
    WHERE EXISTS (SELECT FROM fence) AND feed = ${feed} AND id = ${id}::bigint AND state <> ${state}`.execute(db);
}
