import { sql } from 'kysely';
import type { FeedFilters, LeaseGrant } from '../../sync/ports/index.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { leader, STILL_COMPLETE_AS_OF } from '../tables/lease-columns.js';

/** The target of a rewind: an earlier position by its id, or a delivery time; if both are null, the start of the feed. */
export type RewindTarget = { readonly positionId: string | null; readonly since: Date | null };

/** A feed, as commands see it. Times are null until they are known. */
export interface FeedRow {
  readonly name: string;
  readonly baseUrl: string;
  readonly filters: FeedFilters;
  /** Null: it started at the beginning of the history. */
  readonly startSince: Date | null;
  /** Null: complete from the beginning of the history. */
  readonly completeFrom: Date | null;
  readonly dataCompleteAsOf: Date | null;
  readonly reconciledAsOf: Date | null;
  readonly lastDeliveredAt: Date | null;
  /** Time of the last change that made its filters include more. */
  readonly filtersWidenedAt: Date | null;
  /** The holder of the lease; null: no process holds it. */
  readonly leader: string | null;
}

/** An earlier position of a feed. The cursor itself is not shown; the id identifies it. */
export interface EarlierPosition {
  readonly id: string;
  readonly notedAt: Date;
  readonly reason: 'checkpoint' | 'rejected' | 'rewind';
  /** Delivery time up to which the feed was read at this position, service clock. */
  readonly lastDeliveredAt: Date | null;
  readonly hasCursor: boolean;
}

/** Creates the access of operators' commands to feeds. */
export function createFeeds({ db, tables }: StoreConnection) {
  return {
    /** Returns a feed; undefined if no feed of this name was ever started. */
    async find(name: string): Promise<FeedRow | undefined> {
      const { rows } = await sql<FeedRow>`
        SELECT name, base_url AS "baseUrl", filters, start_since AS "startSince",
          NULLIF(complete_from, '-infinity') AS "completeFrom", ${STILL_COMPLETE_AS_OF} AS "dataCompleteAsOf",
          reconciled_as_of AS "reconciledAsOf", last_delivered_at AS "lastDeliveredAt",
          filters_widened_at AS "filtersWidenedAt", ${leader(tables)} AS leader
        FROM ${tables.feeds} AS feed WHERE name = ${name}`.execute(db);
      return rows[0];
    },

    /** Sets the address of the feed's service, which is the same service. */
    async setBaseUrl(name: string, baseUrl: string): Promise<void> {
      await sql`UPDATE ${tables.feeds} SET base_url = ${baseUrl} WHERE name = ${name}`.execute(db);
    },

    async listNames(): Promise<readonly string[]> {
      const { rows } = await sql<{ name: string }>`SELECT name FROM ${tables.feeds} ORDER BY name`.execute(db);
      return rows.map(({ name }) => name);
    },

    /**
     * Returns the current lease, whichever process holds it; null if there is no such feed. A write under its epoch does not
     * disturb the holder, and writes nothing if another process has taken the lease by then.
     */
    async readLease(feed: string): Promise<LeaseGrant | null> {
      const { rows } = await sql<{ holder: string; epoch: string }>`
        SELECT COALESCE(lease_holder, '') AS holder, lease_epoch AS epoch FROM ${tables.feeds} WHERE name = ${feed}`.execute(
        db,
      );
      const [lease] = rows;
      return lease === undefined
        ? null
        : { feed, holder: lease.holder, epoch: Number(lease.epoch), filtersBefore: null };
    },

    /** Returns the earlier positions of a feed, newest first. */
    async listPositions(feed: string): Promise<readonly EarlierPosition[]> {
      const { rows } = await sql<EarlierPosition>`
        SELECT id, noted_at AS "notedAt", reason, last_delivered_at AS "lastDeliveredAt", cursor IS NOT NULL AS "hasCursor"
        FROM ${tables.cursorHistory} WHERE feed = ${feed} ORDER BY id DESC`.execute(db);
      return rows;
    },

    /**
     * Moves the feed back and raises its epoch in one statement, so that no page read before can be committed. Adds the old
     * position to the history. Stored runs and the freshness of the feed do not change. Returns false if the target is no longer in
     * the history.
     */
    async rewind(feed: string, { positionId, since }: RewindTarget): Promise<boolean> {
      const { rows } = await sql`
        WITH target AS MATERIALIZED (
          SELECT id, cursor, NULL::timestamptz AS since, last_delivered_at AS delivered_up_to FROM ${tables.cursorHistory}
          WHERE feed = ${feed} AND id = ${positionId}::bigint AND cursor IS NOT NULL
          UNION ALL
          SELECT NULL, NULL, ${timestamp(since)}, ${timestamp(since)} WHERE ${positionId}::bigint IS NULL
        ),
        -- Locked first, to read the current row instead of the row at the start of the statement.
        old AS MATERIALIZED (
          SELECT name, cursor, resume_since, delivered_up_to FROM ${tables.feeds} WHERE name = ${feed} FOR UPDATE
        ),
        moved AS (
          UPDATE ${tables.feeds} AS feed SET cursor = target.cursor, resume_since = target.since,
            delivered_up_to = target.delivered_up_to, lease_epoch = feed.lease_epoch + 1
          FROM old, target WHERE feed.name = old.name
          RETURNING old.*, target.id AS target_id, target.since AS target_since
        )
        INSERT INTO ${tables.cursorHistory} (feed, cursor, since, last_delivered_at, reason, target_id, target_since)
        SELECT name, cursor, resume_since, delivered_up_to, 'rewind', target_id, target_since FROM moved
        RETURNING id`.execute(db);
      return rows.length > 0;
    },
  };
}
