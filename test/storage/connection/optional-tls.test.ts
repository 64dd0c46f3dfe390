import { afterEach, expect, inject, test } from 'vitest';
import { DatabaseClient } from '../../../src/storage/connection/client.js';
import { settingsWith } from '../../support/settings.js';

const clients: DatabaseClient[] = [];
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
});

/** Runs on a connection with `sslmode=prefer` to the server of the tests, whether it has TLS or not. */
async function logIn(): Promise<DatabaseClient> {
  const url = new URL(inject('testServer').url);
  url.searchParams.set('sslmode', 'prefer');
  const { connection } = settingsWith({ DATABASE_URL: url.href }).database;
  const client = new DatabaseClient({ ...connection });
  // A lost connection may be reported twice: once when it is cut, and once when it is closed.
  client.on('error', () => {});
  clients.push(client);
  await client.connect();
  return client;
}

test('a connection transfers large statements and results when TLS is optional', async () => {
  const client = await logIn();
  const text = 'scanfeed '.repeat(1_000_000);
  const { rows } = await client.query<{ back: string; md5: string }>('SELECT $1::text AS back, md5($1::text)', [text]);
  expect(rows[0]?.back === text).toBe(true);
  expect(rows[0]?.md5).toMatch(/^[0-9a-f]{32}$/);
});

test('a connection reports its end when TLS is optional', async () => {
  const [client, other] = [await logIn(), await logIn()];
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const lost = new Promise((resolve) => client.once('error', resolve));
  const running = client.query('SELECT pg_sleep(600)').catch((error: Error) => error);
  await other.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
  expect(await running).toMatchObject({ code: '57P01' });
  expect(await lost).toBeInstanceOf(Error);
});
