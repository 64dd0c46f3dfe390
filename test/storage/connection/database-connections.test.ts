import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { sql } from 'kysely';
import { afterEach, describe, expect, it } from 'vitest';
import type { ClientOptions } from '../../../src/storage/connection/client.js';
import { connectError } from '../../../src/storage/connection/connect-errors.js';
import { openDatabase } from '../../../src/storage/connection/pool.js';
import { knowHost } from '../../support/known-host.js';
import { settingsWith } from '../../support/settings.js';
import { startSlowForwarder } from '../../support/slow-handshake.js';

const PASSWORD = 'canary-password';
const HOUR = 3_600_000;
const undos: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of undos.splice(0).reverse()) await undo();
});

/** Starts a server that accepts connections and sends only `answer`, after the first bytes of the client. */
async function startSilentServer(answer: string | Uint8Array = '') {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('data', () => {
      if (answer !== '') socket.write(answer);
      // The client now starts a login or TLS, which is not answered.
      if (answer === '') server.emit('heard');
      else socket.once('data', () => server.emit('heard'));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  undos.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as AddressInfo).port, heard: once(server, 'heard') };
}

/** The connection options for a URL, as the settings create them. */
function connectionTo(port: number, parameters = ''): ClientOptions {
  const url = `postgres://me:${PASSWORD}@127.0.0.1:${port}/app?${parameters}`;
  return settingsWith({ DATABASE_URL: url }).database.connection;
}

const failureOf = (work: Promise<unknown>) => work.then(() => null).catch((error: unknown) => error as Error);

const STAGES = [
  ['before the login', 'sslmode=disable', ''],
  ['when asked for TLS', 'sslmode=require', ''],
  ['when asked whether it has TLS', 'sslmode=prefer', ''],
  ['in the TLS handshake', 'sslmode=require', 'S'],
  ['in the TLS handshake of a direct start', 'sslmode=require&sslnegotiation=direct', ''],
  ['in the TLS handshake that was only preferred', 'sslmode=prefer', 'S'],
  ['before the login, having no TLS', 'sslmode=prefer', 'N'],
] as const;

describe.each(STAGES)('a server that stops answering %s', (_, parameters, answer) => {
  it('does not delay the end when the pool is closed', async () => {
    const { port, heard } = await startSilentServer(answer);
    const database = openDatabase({
      connection: connectionTo(port, parameters),
      maxConnections: 1,
      connectDeadlineMs: HOUR,
    });
    const asking = failureOf(sql`SELECT 1`.execute(database.sql));
    await heard;
    await database.close();
    expect(await asking).toMatchObject({ kind: 'connection', action: 'retry' });
  });

  it('is disconnected when the signal aborts', async () => {
    const { port, heard } = await startSilentServer(answer);
    const stop = new AbortController();
    const database = openDatabase({
      connection: connectionTo(port, parameters),
      maxConnections: 1,
      connectDeadlineMs: HOUR,
      signal: stop.signal,
    });
    undos.push(() => database.close());
    const asking = failureOf(sql`SELECT 1`.execute(database.sql));
    await heard;
    stop.abort();
    expect(await asking).toMatchObject({ kind: 'connection', action: 'retry' });
  });
});

describe('the error of a failed connection', () => {
  it('names the address and the remedy in one line when the server refuses the connection', async () => {
    const { port } = await startSilentServer();
    await undos.pop()?.();
    const database = openDatabase({ connection: connectionTo(port), maxConnections: 1 });
    undos.push(() => database.close());
    expect(await failureOf(sql`SELECT 1`.execute(database.sql))).toMatchObject({
      kind: 'connection',
      action: 'retry',
      message: `no connection to PostgreSQL at 127.0.0.1:${port} (ECONNREFUSED): nothing listens there; start PostgreSQL, or correct host and port (DATABASE_URL, or PGHOST and PGPORT)`,
    });
  });

  it('names the deadline when the server does not answer', async () => {
    const { port } = await startSilentServer();
    const database = openDatabase({ connection: connectionTo(port), maxConnections: 1, connectDeadlineMs: 1 });
    undos.push(() => database.close());
    const failure = await failureOf(sql`SELECT 1`.execute(database.sql));
    expect(failure?.message).toMatch(/^no connection to PostgreSQL at 127\.0\.0\.1:\d+: no login within 0\.001 s/);
  });

  it('says that there is no TLS when sslmode requires it', async () => {
    const { port } = await startSilentServer('N');
    const database = openDatabase({ connection: connectionTo(port, 'sslmode=require'), maxConnections: 1 });
    undos.push(() => database.close());
    expect((await failureOf(sql`SELECT 1`.execute(database.sql)))?.message).toContain('it has no TLS, but sslmode');
  });

  const to = { host: 'db.example', port: 6432, user: 'scan"feed', database: 'app', deadlineMs: 10_000 };
  const withCode = (code: string) => Object.assign(new Error(`canary ${PASSWORD}`), { code });
  const reported = (code: string) => Object.assign(withCode(code), { severity: 'FATAL' });

  it.each([
    ['ENOTFOUND', 'the host name is unknown; correct host and port'],
    ['EAI_AGAIN', 'the host name could not be resolved; check DNS'],
    ['EHOSTUNREACH', 'there is no route to the host'],
    ['ETIMEDOUT', 'the host does not respond'],
    ['ECONNRESET', 'the server closed the connection before the login'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is not trusted; check sslrootcert and sslmode'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'the TLS handshake failed'],
  ])('names a remedy when the code is %s', (code, advice) => {
    const { message } = connectError(withCode(code), to);
    expect(message.startsWith(`no connection to PostgreSQL at db.example:6432 (${code}): ${advice}`)).toBe(true);
    expect(message).not.toMatch(/canary|\n/);
  });

  it.each([
    ['28P01', 'authentication', 'refused the password of the role "scan\\"feed"; check the role and its password'],
    ['28000', 'authentication', 'refused the role "scan\\"feed" access to the database "app"; check that'],
    ['3D000', 'database_missing', 'has no database "app"; create it'],
    ['42501', 'permission', 'refused the role "scan\\"feed" access to the database "app"; GRANT CONNECT'],
    ['53300', 'resources', 'has no free connection'],
    ['57P03', 'shutdown', 'is starting, stopping or recovering'],
    ['08P01', 'connection', 'refused the connection; if it is a pooler'],
    ['58000', 'system', 'refused the connection: system'],
  ])('names a remedy when SQLSTATE is %s, of kind %s', (sqlstate, kind, advice) => {
    const error = connectError(reported(sqlstate), to);
    expect(error).toMatchObject({ kind, sqlstate });
    expect(error.message.startsWith(`PostgreSQL at db.example:6432 ${advice}`)).toBe(true);
    expect(error.message.endsWith(`(SQLSTATE ${sqlstate})`)).toBe(true);
    expect(error.message).not.toMatch(/canary|\n/);
  });

  it.each([
    ['::1', '[::1]:6432'],
    ['/var/run/postgresql', '/var/run/postgresql/.s.PGSQL.6432'],
  ])('shows the host in the usual notation when it is %s', (host, shown) => {
    expect(connectError(withCode('ECONNREFUSED'), { ...to, host }).message).toContain(`at ${shown} (`);
  });
});

it('connects to a name with two addresses when the handshake takes a second', async () => {
  const refusal = Buffer.from('SFATAL\0C28P01\0Mno\0\0');
  const length = Buffer.alloc(4);
  length.writeInt32BE(refusal.length + 4);
  const { port } = await startSilentServer(Buffer.concat([Buffer.from('E'), length, refusal]));
  const slow = await startSlowForwarder(port);
  undos.push(slow.stop);
  await slow.slowDown();
  const connection = { ...connectionTo(slow.port, 'sslmode=disable'), host: 'database.test', lookup: slow.lookup };
  const database = openDatabase({ connection, maxConnections: 1 });
  undos.push(database.close);
  expect(await failureOf(sql`SELECT 1`.execute(database.sql))).toMatchObject({ sqlstate: '28P01' });
});

it('connects to the address that the process knows when the name cannot be looked up', async () => {
  await knowHost('database.test');
  const { port, heard } = await startSilentServer();
  const connection = { ...connectionTo(port), host: 'database.test' };
  const database = openDatabase({ connection, maxConnections: 1 });
  const asking = failureOf(sql`SELECT 1`.execute(database.sql));
  undos.push(() => asking, database.close);
  expect(await Promise.race([heard, asking])).toEqual([]);
});
