import { sql } from 'kysely';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { useProgram } from '../../support/program/setup.js';
import { openTestDatabase, TEST_SCHEMA, tables, testFeed, useServerOfItsOwn } from '../../support/store.js';
import { TcpProxy } from '../../support/tcp-proxy.js';

const setup = useProgram();
const primary = useServerOfItsOwn();
const standby = useServerOfItsOwn();
/** An address that can be pointed to another server, with the login of the primary. */
let address: TcpProxy;
const url = () => address.urlOf(primary.url);

beforeAll(() =>
  withConnection(standby.url, async (client) => {
    await client.query(`ALTER ROLE CURRENT_USER PASSWORD ${pg.escapeLiteral(new URL(primary.url).password)}`);
    await client.query('ALTER ROLE CURRENT_USER SET default_transaction_read_only = on');
  }),
);
beforeEach(async () => {
  address = await TcpProxy.to(standby.url);
});
afterEach(() => address.close());

const leadTo = (server: { readonly url: string }) => {
  const { hostname: host, port } = new URL(server.url);
  address.target = { host, port: Number(port) };
};

test('the store reads no stale data, and writes on the next attempt, when the address points to the primary again', async () => {
  const database = openTestDatabase(url(), 3);
  const settings = { leaseTtlMs: 30_000, pendingRetryMs: 30_000, keptDays: null, monotonic: () => performance.now() };
  const store = createStore(database, { schema: TEST_SCHEMA, ...settings });
  const readOnly = async () => {
    const { rows } = await sql<{ on: boolean }>`
      SELECT current_setting('transaction_read_only')::boolean AS on, pg_sleep(0.02)`.execute(database.sql);
    return rows[0]?.on;
  };
  expect(await Promise.all([readOnly(), readOnly(), readOnly()])).toEqual([true, true, true]);
  await expect(store.acquireLease(testFeed(), 'test')).rejects.toMatchObject({ kind: 'read_only' });
  leadTo(primary);
  expect(await store.acquireLease(testFeed(), 'test')).toMatchObject({ epoch: 1 });
  expect(await Promise.all([readOnly(), readOnly(), readOnly()])).toEqual([false, false, false]);
  await sql`DELETE FROM ${tables.feeds}`.execute(database.sql);
  await database.close();
});

test('the daemon continues when the address temporarily pointed to a standby', async () => {
  leadTo(primary);
  setup.hide({ password: new URL(primary.url).password });
  const service = await setup.startService();
  service.deliver(5);
  const daemon = setup.daemon(setup.environment(service, { url: url() }));
  await daemon.catchesUp();
  leadTo(standby);
  address.cutAll('reset');
  service.deliver(5);
  await daemon.failsRepeatedly('lease', 3);
  expect((await daemon.status()).currentErrors).toContainEqual(
    expect.objectContaining({ stage: 'lease', kind: 'read_only' }),
  );
  leadTo(primary); // the standby lives on, and so do its connections
  await daemon.catchesUp();
  await daemon.reaches({ runsWritten: 10 });
});
