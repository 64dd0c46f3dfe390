import { sql } from 'kysely';
import type { LeaseGrant } from '../../sync/ports/index.js';
import { type StoreConnection, timestamp } from '../connection/store-connection.js';
import { leader } from '../tables/lease-columns.js';

/** The target of a rewind: an earlier position by its id, a delivery time, or the start of the feed. */
export type RewindTarget = { readonly positionId: string } | { readonly since: Date } | 'start';

export type FeedRow = NonNullable<Awaited<ReturnType<ReturnType<typeof createFeeds>['find']>>>;
export type EarlierPosition = Awaited<ReturnType<ReturnType<typeof createFeeds>['listPositions']>>[number];

/** Creates the access of operators' commands to feeds. */
export function createFeeds({ db, tables }: StoreConnection) {
  return {
    /** Returns a feed; undefined if no feed of this name was ever started. Times are null until they are known. */
    find: (name: string) =>
      db
        .selectFrom('feeds as feed')
        .where('name', '=', name)
        .select([
          'name',
          'base_url as baseUrl',
          'filters',
          // Null: it started at the beginning of the history.
          'start_since as startSince',
          // Null: complete from the beginning of the history.
          sql<Date | null>`NULLIF(complete_from, '-infinity')`.as('completeFrom'),
          'data_complete_as_of as dataCompleteAsOf',
          'reconciled_as_of as reconciledAsOf',
          'last_delivered_at as lastDeliveredAt',
          // Time of the last change that made its filters include more.
          'filters_widened_at as filtersWidenedAt',
          leader(tables).as('leader'),
        ])
        .executeTakeFirst(),

    /** Sets the address of the feed's service, which is the same service. */
    async setBaseUrl(name: string, baseUrl: string): Promise<void> {
      await db.updateTable('feeds').set({ base_url: baseUrl }).where('name', '=', name).execute();
    },

    async listNames(): Promise<readonly string[]> {
      const rows = await db.selectFrom('feeds').select('name').orderBy('name').execute();
      return rows.map(({ name }) => name);
    },

    /**
     * Returns the current lease, whichever process holds it; null if there is no such feed. A write under its epoch does not
     * disturb the holder, and writes nothing if another process has taken the lease by then.
     */
    async readLease(feed: string): Promise<LeaseGrant | null> {
      const row = await db
        .selectFrom('feeds')
        .where('name', '=', feed)
        .select(['lease_holder', 'lease_epoch'])
        .executeTakeFirst();
      if (row === undefined) return null;
      return { feed, holder: row.lease_holder ?? '', epoch: Number(row.lease_epoch), filtersBefore: null };
    },

    /** Returns the earlier positions of a feed, newest first. The cursors themselves are omitted; their ids identify them. */
    listPositions: (feed: string) =>
      db
        .selectFrom('cursor_history')
        .where('feed', '=', feed)
        .select([
          'id',
          'noted_at as notedAt',
          'reason',
          // Delivery time up to which the feed was read at this position, service clock.
          'last_delivered_at as lastDeliveredAt',
          sql<boolean>`cursor IS NOT NULL`.as('hasCursor'),
        ])
        .orderBy('id', 'desc')
        .execute(),

    /**
     * Moves the feed back and raises its epoch in one statement, so that no page read before can be committed. Adds the old
     * position to the history. Stored runs and the freshness of the feed do not change. Returns false if the target is no longer in
     * the history.
     */
    async rewind(feed: string, to: RewindTarget): Promise<boolean> {
      const { rows } = await sql`
        WITH target AS MATERIALIZED (${targetRow(feed, to)}),
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

  function targetRow(feed: string, to: RewindTarget) {
    if (to === 'start') {
      return sql`
        SELECT NULL::bigint AS id, NULL::text AS cursor, NULL::timestamptz AS since, NULL::timestamptz AS delivered_up_to`;
    }
    if ('since' in to) {
      const since = timestamp(to.since);
      return sql`SELECT NULL::bigint AS id, NULL::text AS cursor, ${since} AS since, ${since} AS delivered_up_to`;
    }
    return sql`
        SELECT id, cursor, NULL::timestamptz AS since, last_delivered_at AS delivered_up_to FROM ${tables.cursorHistory}
        WHERE feed = ${feed} AND id = ${to.positionId}::bigint AND cursor IS NOT NULL`;
  }
}
