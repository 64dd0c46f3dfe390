/**
 * The way in which general synchronization engines write: a statement a row, five at a time over a pool, no
 * transaction around them.
 */
import pg from 'pg';
import { contest } from './contest.js';
import { fetchPage, PLAIN_TABLES, UPSERT, valuesOf } from './plain-table.js';

const AT_ONCE = 5;

await contest(async ({ databaseUrl, serviceUrl, apiKey }) => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: AT_ONCE });
  await pool.query(PLAIN_TABLES);
  await pool.query('INSERT INTO feed_cursor VALUES (NULL)');
  return async () => {
    let runs = 0;
    for (let cursor: string | null = null; ; ) {
      const { items, nextCursor } = await fetchPage(serviceUrl, apiKey, cursor);
      if (items.length === 0) return runs;
      for (let first = 0; first < items.length; first += AT_ONCE) {
        await Promise.all(items.slice(first, first + AT_ONCE).map((item) => pool.query(UPSERT, valuesOf(item))));
      }
      await pool.query('UPDATE feed_cursor SET cursor = $1', [nextCursor]);
      runs += items.length;
      cursor = nextCursor;
    }
  };
});
