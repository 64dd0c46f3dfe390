/** Thirty lines of somebody who knows PostgreSQL: a page is one parameter, stored by one prepared statement with the cursor. */
import pg from 'pg';
import { contest } from './contest.js';
import { createExpertsTable, storeAllPages, storePages } from './experts-table.js';

await contest(async (config) => {
  const client = new pg.Client({ connectionString: config.databaseUrl });
  await client.connect();
  await createExpertsTable(client);
  const text = storePages('SELECT $1::jsonb AS page');
  return () => storeAllPages(client, config, (page) => client.query({ name: 'store', text, values: [page.text] }));
});
