import pg from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase, type Preparation, useDatabase } from '../support/postgres/index.js';
import { withConnection } from '../support/postgres/maintenance.js';

const database = useDatabase();

function select<T extends pg.QueryResultRow>(url: string, sql: string): Promise<T[]> {
  return withConnection(url, async (client) => (await client.query<T>(sql)).rows);
}

test('a test file gets an empty database when it requests one', async () => {
  expect(await select(database.url, 'SELECT current_database() AS name')).toEqual([{ name: database.name }]);
  expect(await select(database.url, `SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace`)).toEqual([]);
});

test('sessions use another time zone than UTC when they connect', async () => {
  const [row] = await select<{ zone: string }>(database.url, `SELECT current_setting('TimeZone') AS zone`);
  expect(row?.zone).toBe('Asia/Kathmandu');
});

test('a prepared database is prepared once when several files request it', async () => {
  let prepared = 0;
  const preparation: Preparation = {
    key: 'letters',
    prepare: async (url) => {
      prepared += 1;
      await select(url, `CREATE TABLE letter AS SELECT 'a' AS name`);
    },
  };
  const [one, two] = await Promise.all([createTestDatabase(preparation), createTestDatabase(preparation)]);
  await select(one.url, `INSERT INTO letter VALUES ('b')`);
  expect(await select(one.url, 'SELECT name FROM letter ORDER BY name')).toEqual([{ name: 'a' }, { name: 'b' }]);
  expect(await select(two.url, 'SELECT name FROM letter')).toEqual([{ name: 'a' }]);
  expect(prepared).toBe(1);
  await Promise.all([one.drop(), two.drop()]);
});

test('a database can be dropped when connections are open', async () => {
  const doomed = await createTestDatabase();
  const client = new pg.Client({ connectionString: doomed.url });
  // Two errors: the server ends the session, then the connection is closed.
  client.on('error', () => {});
  const closed = new Promise<void>((resolve) => client.once('end', resolve));
  await client.connect();
  await doomed.drop();
  await closed;
  await expect(select(doomed.url, 'SELECT 1')).rejects.toMatchObject({ code: '3D000' });
});
