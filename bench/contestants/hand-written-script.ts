/** The script that people write: fetch a page, `JSON.parse`, one upsert and one commit per row, then the cursor. */
import pg from 'pg';
import { contest } from './contest.js';
import { fetchPage, PLAIN_TABLES, UPSERT, valuesOf } from './plain-table.js';

await contest(async ({ databaseUrl, serviceUrl, apiKey }) => {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(PLAIN_TABLES);
  await client.query('INSERT INTO feed_cursor VALUES (NULL)');
  return async () => {
    let runs = 0;
    for (let cursor: string | null = null; ; ) {
      const { items, nextCursor } = await fetchPage(serviceUrl, apiKey, cursor);
      if (items.length === 0) return runs;
      for (const item of items) await client.query(UPSERT, valuesOf(item));
      await client.query('UPDATE feed_cursor SET cursor = $1', [nextCursor]);
      runs += items.length;
      cursor = nextCursor;
    }
  };
});
