import { type Kysely, sql } from 'kysely';
import type { LeaseGrant } from '../sync/ports.js';
import { backfillIsComplete } from './passes.js';
import type { Tables } from './schema.js';

/** A feed as an operator's command needs it. Times are null until they are known. */
export interface FeedRow {
  readonly name: string;
  readonly baseUrl: string;
  readonly filters: unknown;
  readonly hasCursor: boolean;
  /** Null: it started at the beginning of the history. */
  readonly startSince: Date | null;
  /** Null: complete from the beginning of the history. */
  readonly completeFrom: Date | null;
  readonly dataCompleteAsOf: Date | null;
  readonly reconciledAsOf: Date | null;
  readonly lastDeliveredAt: Date | null;
  /** When its filters began to include more than before; null: a full pass has read everything since. */
  readonly widenedAt: Date | null;
  /** Everything from its beginning to its end was read. */
  readonly backfillComplete: boolean;
  /** Null: no process holds the feed. */
  readonly leader: string | null;
}

/** Null where no feed of this name was ever started. */
export async function readFeed(db: Kysely<unknown>, tables: Tables, name: string): Promise<FeedRow | null> {
  const { rows } = await sql<FeedRow>`
    SELECT name, base_url AS "baseUrl", filters, cursor IS NOT NULL AS "hasCursor", start_since AS "startSince",
      NULLIF(complete_from, '-infinity') AS "completeFrom", data_complete_as_of AS "dataCompleteAsOf", reconciled_as_of AS "reconciledAsOf",
      last_delivered_at AS "lastDeliveredAt", widened_at AS "widenedAt", ${backfillIsComplete(tables)} AS "backfillComplete",
      CASE WHEN lease_expires_at > clock_timestamp() THEN lease_holder END AS leader
    FROM ${tables.feeds} AS feed WHERE name = ${name}`.execute(db);
  return rows[0] ?? null;
}

export async function listFeedNames(db: Kysely<unknown>, tables: Tables): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM ${tables.feeds} ORDER BY name`.execute(db);
  return rows.map(({ name }) => name);
}

/**
 * The lease as it is now, whoever holds it: a write under its epoch is one beside the holder, without a cursor, and void
 * when the feed changes hands before it. Null where there is no such feed.
 */
export async function readPresentLease(db: Kysely<unknown>, tables: Tables, feed: string): Promise<LeaseGrant | null> {
  const { rows } = await sql<{ holder: string | null; epoch: string }>`
    SELECT lease_holder AS holder, lease_epoch AS epoch FROM ${tables.feeds} WHERE name = ${feed}`.execute(db);
  const row = rows[0];
  return row === undefined ? null : { feed, holder: row.holder ?? '', epoch: Number(row.epoch), filtersBefore: null };
}
