import { sql } from 'kysely';
import type { FeedStore } from '../../sync/ports/index.js';
import { anyOf, type StoreConnection } from '../connection/store-connection.js';
import { quoted } from '../schema/schema.js';

/** So long it holds that the index has outgrown the memory, or has not: it grows in days. Milliseconds. */
const LOOKED_AT_EVERY_MS = 60_000;
/** Connections of which one may be taken: the others are for the next commit, and for the lease. */
const FREE_AT_LEAST = 3;
const LOOKUPS_AT_ONCE = 2;
/** As many as a feed is read ahead (run.ts): earlier ones are committed by now. */
const PAGES_WAITING = 10;

/**
 * Has PostgreSQL fetch the pages of the primary key's index on which these scans belong, over a connection that is free
 * (docs/decisions/0012). Scan ids come in no order: once the index has outgrown the memory nearly each has a page of its
 * own, for which another one must be written back, and a commit would wait for them one by one. What is announced while
 * all look-ups are under way goes with the next. Does nothing while the index fits, while connections are scarce, and
 * after a failure until the next look at the index.
 */
export function createIndexPrefetch(
  connection: StoreConnection,
  freeConnections: () => number,
  monotonic: () => number,
): Pick<FeedStore, 'prefetchKeys'> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let outgrown = false;
  let lookups = 0;
  let waiting: (readonly string[])[] = [];
  const hasConnection = () => freeConnections() >= FREE_AT_LEAST;
  const prefetchKeys = async (scanIds: readonly string[]) => {
    if (lookups === 0 && !hasConnection()) return;
    const now = monotonic();
    if (now - lookedAt >= LOOKED_AT_EVERY_MS && hasConnection()) {
      lookedAt = now;
      outgrown = await outgrowsMemory(connection);
    }
    if (!outgrown) return;
    waiting = [...waiting, scanIds].slice(-PAGES_WAITING);
    if (lookups === LOOKUPS_AT_ONCE) return;
    lookups++;
    try {
      while (outgrown && waiting.length > 0 && hasConnection()) {
        await readKeys(connection, waiting.splice(0).flat());
      }
    } finally {
      lookups--;
      if (lookups === 0) waiting = []; // they would be committed before the next look-up
    }
  };
  return {
    prefetchKeys: (scanIds) =>
      prefetchKeys(scanIds).catch((error: unknown) => {
        outgrown = false;
        throw error;
      }),
  };
}

/** Half of the memory is for the table's own pages: new ones pass through it all the time. */
async function outgrowsMemory({ db, tables }: StoreConnection): Promise<boolean> {
  const table = `${quoted(tables.schema)}.runs`;
  const { rows } = await sql<{ outgrown: boolean }>`
    SELECT pg_relation_size(indexrelid) > pg_size_bytes(current_setting('shared_buffers')) / 2 AS outgrown
    FROM pg_index
    WHERE indrelid = ${table}::regclass AND indisprimary`.execute(db);
  return rows[0]?.outgrown ?? false;
}

/** The revision is asked for so that the rows of those that are stored are fetched as well: the commit compares them. */
async function readKeys({ db }: StoreConnection, scanIds: readonly string[]): Promise<void> {
  await db
    .selectFrom('runs')
    .select(({ fn }) => fn.count('revision').as('revisions'))
    .where('scan_id', '=', anyOf(scanIds))
    .execute();
}
