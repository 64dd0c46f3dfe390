import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/**
 * Says that the feed's cursor belongs to the service at `baseUrl`. The epoch goes up with it, so that a process that still
 * reads the old address cannot commit. False: the feed's address is no longer `from`.
 */
export async function adoptFeed(
  db: Kysely<unknown>,
  tables: Tables,
  feed: string,
  { from, baseUrl }: { readonly from: string; readonly baseUrl: string },
): Promise<boolean> {
  const { rows } = await sql`
    WITH adopted AS (
      UPDATE ${tables.feeds} SET base_url = ${baseUrl}, lease_epoch = lease_epoch + 1
      WHERE name = ${feed} AND base_url = ${from}
      RETURNING name, cursor, read_up_to
    )
    INSERT INTO ${tables.cursorHistory} (feed, cursor, last_delivered_at, reason)
    SELECT name, cursor, read_up_to, 'adopt' FROM adopted
    RETURNING id`.execute(db);
  return rows.length > 0;
}
