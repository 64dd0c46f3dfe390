import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { readSettings } from '../../src/settings/settings.js';
import { DatabaseClient } from '../../src/storage/connection/client.js';
import { openDatabase } from '../../src/storage/connection/pool.js';
import { testCertificate } from '../support/certificate.js';
import { type HandshakeServer, startHandshakeServer, type TlsAnswer } from '../support/postgres-handshake.js';
import { LEAST, mistakesWith, settingsWith } from '../support/settings.js';

const ONE_HOST = 'one host, or the folder of a Unix socket; with several servers, an address of the primary';

const URL_UNSET = { DATABASE_URL: '' };
const ours = testCertificate('127.0.0.1');
const otherName = testCertificate('elsewhere.example');
const stranger = testCertificate('127.0.0.1');
const FILES = {
  'ca.pem': ours.cert,
  'other.pem': otherName.cert,
  'key.pem': ours.key,
  'no.pem': 'no certificate',
  'empty.pem': '',
};
const folder = mkdtempSync(join(tmpdir(), 'scanfeed-connection-'));
beforeAll(() => {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Replaces the paths of the files by their real paths. The home folder has no files unless HOME is given. */
function inFolder(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const moved = Object.entries(env).map(([name, text]) => [name, text?.replace(/\/\w+\.pem/g, `${folder}$&`)]);
  return { HOME: folder, ...URL_UNSET, ...Object.fromEntries(moved) };
}

function connectionWith(env: NodeJS.ProcessEnv) {
  return settingsWith(inFolder(env)).database.connection;
}

describe('the connection', () => {
  test.each([
    ['postgres://u:p@h/d', { host: 'h', port: 5432, user: 'u', database: 'd' }],
    ['postgresql://u@h:6432', { host: 'h', port: 6432, user: 'u', database: 'u' }],
    [
      'postgres://u%40x:a%2Fb%25@[::1]:1/d%20b',
      { host: '::1', port: 1, user: 'u@x', database: 'd b', password: 'a/b%' },
    ],
    ['postgres://u:p+q@h/d', { password: 'p+q' }],
    ['postgres://u:p,q r@h/d+e%2Ff', { host: 'h', password: 'p,q r', database: 'd+e/f' }],
    ['postgres://u@/d?host=h', { host: 'h', user: 'u', database: 'd' }],
    ['postgres://u:p q%2Fr@h/d?dbname=a+b%20c', { password: 'p q/r', database: 'a+b c' }],
    ['postgres://u@h/d?sslmode=disable&uselibpqcompat=true', { host: 'h', ssl: false }],
    ['postgres://u:p@q:r@h/d', { user: 'u', password: 'p@q:r', host: 'h', database: 'd' }],
    ['postgres://h/d?user=u@srv&password=p@q', { host: 'h', user: 'u@srv', password: 'p@q' }],
    ['postgres://u@%2Fvar%2Frun%2Fpg/d', { host: '/var/run/pg', ssl: false }],
    ['postgres:///d?host=/var/run/pg&user=u&port=7', { host: '/var/run/pg', port: 7, user: 'u', database: 'd' }],
    ['postgres://a:b@h/d?user=u&password=p%20q&dbname=e', { user: 'u', password: 'p q', database: 'e' }],
    [
      'postgres://u@h/d?application_name=x&connect_timeout=5&pgbouncer=true',
      { host: 'h', application_name: 'scanfeed' },
    ],
  ])('reads %s as libpq does', async (url, expected) => {
    const { password, ...connection } = connectionWith({ DATABASE_URL: url });
    const shown = { ...connection, ...(password === undefined ? {} : { password: await password() }) };
    expect(shown).toMatchObject(expected);
  });

  test('uses PG* variables when there is no URL, or the URL does not specify a part', async () => {
    const env = { PGHOST: 'pg', PGPORT: '7', PGUSER: 'me', PGPASSWORD: 'mine', PGDATABASE: 'db', PGSSLMODE: 'disable' };
    const alone = connectionWith(env);
    expect(alone).toMatchObject({ host: 'pg', port: 7, user: 'me', database: 'db', ssl: false });
    expect(await alone.password?.()).toBe('mine');
    const both = connectionWith({ ...env, DATABASE_URL: 'postgres://you@h/d' });
    expect(both).toMatchObject({ host: 'h', port: 7, user: 'you', database: 'd' });
    expect(await both.password?.()).toBe('mine');
  });

  test('uses another connection for migrations when one is set', () => {
    const { database } = settingsWith({ SCANFEED_MIGRATION_DATABASE_URL: 'postgres://owner@direct/d' });
    expect(database.migrationConnection).toMatchObject({ host: 'direct', user: 'owner' });
    expect(database.connection).toMatchObject({ host: 'db.example', user: 'daemon' });
  });

  test.each([
    [{}, 'DATABASE_URL', 'is not set'],
    [{ PGHOST: 'h' }, 'DATABASE_URL', 'the role (PGUSER) is missing'],
    [{ DATABASE_URL: 'postgres:///d' }, 'DATABASE_URL', 'the host (PGHOST) and the role (PGUSER) is missing'],
    [{ DATABASE_URL: 'postgres://u@a,b/d' }, 'DATABASE_URL', ONE_HOST],
    [{ DATABASE_URL: 'postgres://u@a:1,b:2/d' }, 'DATABASE_URL', ONE_HOST],
    [{ DATABASE_URL: 'postgres://u:p,w@a:1,b:2/d' }, 'DATABASE_URL', ONE_HOST],
    [{ DATABASE_URL: 'postgres:///d?user=u&host=a,b' }, 'DATABASE_URL', ONE_HOST],
    [{ PGHOST: 'a,b', PGUSER: 'u' }, 'PGHOST', ONE_HOST],
    [{ DATABASE_URL: 'postgres://u@h:99999/d' }, 'DATABASE_URL', 'not a valid URL'],
    [{ DATABASE_URL: 'host=h user=u' }, 'DATABASE_URL', 'the form host=… dbname=… is not supported; write it as a URL'],
    [{ DATABASE_URL: 'mysql://u@h/d' }, 'DATABASE_URL', 'does not begin with'],
    [{ DATABASE_URL: 'postgres://u@h/d?constructor=x' }, 'DATABASE_URL', 'constructor is not supported'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslcrl=/x' }, 'DATABASE_URL', 'sslcrl is not supported'],
    [{ DATABASE_URL: 'postgres://u@h/d?port=0x1' }, 'DATABASE_URL', 'its port must be a whole number from 1 to 65535'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=no-verify' }, 'DATABASE_URL', 'its sslmode must be disable, allow'],
    [{ DATABASE_URL: 'postgres://u@h/d', PGSSLMODE: 'lax' }, 'PGSSLMODE', 'expected: disable, allow, prefer, require'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=verify-full' }, 'DATABASE_URL', 'requires sslrootcert'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=verify-ca&sslrootcert=/none' }, 'DATABASE_URL', 'ENOENT'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=require', PGSSLROOTCERT: '/no.pem' }, 'PGSSLROOTCERT', 'NO_START_LINE'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=verify-ca&sslrootcert=/empty.pem' }, 'DATABASE_URL', 'no certificate'],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=verify-full&sslrootcert=/empty.pem' }, 'DATABASE_URL', 'NO_START_LINE'],
    [
      {
        DATABASE_URL: 'postgres://u@h/d',
        PGSSLROOTCERT: '/ca.pem',
        PGSSLMODE: 'verify-ca',
        PGSSLCERT: '/other.pem',
        PGSSLKEY: '/key.pem',
      },
      'PGSSLROOTCERT',
      'the file of sslrootcert or sslcert or sslkey cannot be used (ERR_OSSL_X509_KEY_VALUES_MISMATCH)',
    ],
    [
      { DATABASE_URL: 'postgres://u@h/d?sslmode=require&sslrootcert=system' },
      'DATABASE_URL',
      'requires sslmode=verify-full',
    ],
    [{ DATABASE_URL: 'postgres://u@h/d?sslmode=require&sslcert=/ca.pem' }, 'DATABASE_URL', 'must be set together'],
    [
      { DATABASE_URL: 'postgres://u@h/d?sslnegotiation=direct' },
      'DATABASE_URL',
      'requires sslmode=require or stricter',
    ],
    [
      { DATABASE_URL: 'postgres://u@h/d?channel_binding=maybe' },
      'DATABASE_URL',
      'its channel_binding must be disable, prefer, require',
    ],
  ])('reports a mistake when the environment is %j', (env, variable, text) => {
    const { mistakes, message } = mistakesWith(inFolder(env));
    expect(mistakes).toMatchObject([{ variable }]);
    expect(message).toContain(text);
  });

  test.each([
    ['u:12/canary@h/d', 'in the role and the password, / is written as %2F'],
    ['u:pa/canary@h/d', 'in the role and the password, / is written as %2F'],
    ['u:p@1/canary@h/d', 'in the role and the password, / is written as %2F'],
    ['u:/canary@h/d?sslmode=require', 'in the role and the password, / is written as %2F'],
    ['u:12?canary@h/d', '? is written as %3F'],
    ['u:p@1?canary@h/d', '? is written as %3F'],
    ['u:12?canary=x&host=y@h/d', '? is written as %3F'],
    ['u:12#canary@h/d', 'it contains a #, which is written as %23'],
    ['u:canary%@h/d', 'a % itself is written as %25'],
    ['u:canary%zz@h/d', 'a % itself is written as %25'],
    ['u:canary%E9@h/d', 'a % itself is written as %25'],
    ['u:can\nary@h/d', 'a line break'],
    ['u:canary@h:99999/d', 'it is not a valid URL'],
    ['u:canary@[::1/d', 'it is not a valid URL'],
    ['u:canary@a:1,b:2/d', ONE_HOST],
  ])('reports a password that is not escaped without showing it: %j', (rest, text) => {
    // The role is set, so that nothing else is missing.
    const env = { PGUSER: 'someone', DATABASE_URL: `postgres://${rest}` };
    const { mistakes, message } = mistakesWith(env);
    expect(mistakes).toMatchObject([{ variable: 'DATABASE_URL', value: '(hidden)' }]);
    expect(message).toContain(text);
    expect(message).not.toMatch(/canary|can\nary/);
  });

  test('trusts the authorities of Node.js and checks everything when sslrootcert=system', () => {
    const { ssl } = connectionWith({ DATABASE_URL: 'postgres://u@h/d?sslrootcert=system' });
    expect(ssl).toEqual({ rejectUnauthorized: true });
  });

  test('hides the key of a client certificate', () => {
    const url = 'postgres://u@h/d?sslmode=require&sslcert=/ca.pem&sslkey=/key.pem';
    const connection = connectionWith({ DATABASE_URL: url });
    expect(connection.ssl).toHaveProperty('key', ours.key);
    expect(JSON.stringify(connection)).not.toContain('PRIVATE KEY');
  });

  test('checks the certificate, whatever NODE_TLS_REJECT_UNAUTHORIZED is', () => {
    const url = 'postgres://u@h/d?sslmode=verify-full&sslrootcert=/ca.pem';
    expect(connectionWith({ DATABASE_URL: url }).ssl).toEqual({ rejectUnauthorized: true, ca: ours.cert });
  });

  test('warns when channel binding is required, which it cannot enforce', () => {
    const settings = settingsWith({ DATABASE_URL: 'postgres://u@h/d?sslmode=require&channel_binding=require' });
    expect(settings.database.connection.enableChannelBinding).toBe(true);
    expect(settings.warnings).toEqual([expect.stringContaining('channel_binding')]);
  });
});

describe('sslmode', () => {
  const servers: HandshakeServer[] = [];
  const clients: DatabaseClient[] = [];
  afterEach(async () => {
    await Promise.allSettled(clients.splice(0).map((client) => client.end()));
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  /** Returns how the server received the login, or the code of the error. */
  async function logIn(parameters: string, answer: TlsAnswer, env: NodeJS.ProcessEnv = {}) {
    const server = await startHandshakeServer(answer);
    servers.push(server);
    const url = `postgres://u@127.0.0.1:${server.port}/d?${parameters}`;
    const client = new DatabaseClient({ ...connectionWith({ DATABASE_URL: url, ...env }) });
    client.on('error', () => {});
    clients.push(client);
    return client.connect().then(
      () => server.logins.join(),
      (error: Error & { code?: string }) => error.code ?? error.message,
    );
  }

  test.each([
    ['', 'none', 'plain'],
    ['', ours, 'tls'],
    ['sslmode=prefer', stranger, 'tls'],
    ['sslmode=allow', ours, 'tls'],
    ['sslmode=allow', 'none', 'plain'],
    ['sslmode=disable', ours, 'plain'],
    ['sslmode=require', stranger, 'tls'],
    ['sslmode=require', 'none', 'The server does not support SSL connections'],
    ['sslmode=require&sslrootcert=/ca.pem', ours, 'tls'],
    ['sslmode=require&sslrootcert=/ca.pem', stranger, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['sslmode=require&sslrootcert=/other.pem', otherName, 'tls'],
    ['sslmode=verify-ca&sslrootcert=/other.pem', otherName, 'tls'],
    ['sslmode=verify-ca&sslrootcert=/ca.pem', stranger, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['sslmode=verify-full&sslrootcert=/ca.pem', ours, 'tls'],
    ['sslmode=verify-full&sslrootcert=/other.pem', otherName, 'ERR_TLS_CERT_ALTNAME_INVALID'],
    ['sslmode=verify-full&sslrootcert=/ca.pem', 'none', 'The server does not support SSL connections'],
    ['sslrootcert=system', ours, 'DEPTH_ZERO_SELF_SIGNED_CERT'],
    ['sslmode=require&sslcert=/ca.pem&sslkey=/key.pem', ours, 'tls'],
    ['sslmode=prefer&sslcert=/ca.pem&sslkey=/key.pem', ours, 'tls'],
  ] as const)('ends a login with %s as expected (case %#)', async (parameters, answer, expected) => {
    expect(await logIn(parameters, answer)).toBe(expected);
  });

  test('require checks the issuer when the home folder has a root certificate', async () => {
    const home = join(folder, 'home');
    mkdirSync(join(home, '.postgresql'), { recursive: true });
    writeFileSync(join(home, '.postgresql', 'root.crt'), ours.cert);
    expect(await logIn('sslmode=require', stranger, { HOME: home })).toBe('DEPTH_ZERO_SELF_SIGNED_CERT');
    expect(await logIn('sslmode=require', ours, { HOME: home })).toBe('tls');
  });

  test('a pool trusts a rotated authority, and keeps the last valid one while its file is unusable', async () => {
    const server = await startHandshakeServer(stranger);
    servers.push(server);
    const file = join(folder, 'rotated.pem');
    writeFileSync(file, ours.cert);
    const kept: unknown[] = [];
    const url = `postgres://u@127.0.0.1:${server.port}/d?sslmode=verify-full&sslrootcert=${file}`;
    const settings = readSettings({ ...LEAST, DATABASE_URL: url }, { onKept: (value) => kept.push(value) });
    const database = openDatabase({ connection: settings.database.connection, maxConnections: 1 });
    const connect = () => sql`SELECT 1`.execute(database.sql).then(String, String);
    try {
      for (const text of [ours.cert, 'half a certificate', 'half a certificate']) {
        writeFileSync(file, text);
        expect(await connect()).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
      }
      expect(kept).toEqual([{ variable: 'PGSSLROOTCERT', reason: 'ERR_OSSL_PEM_NO_START_LINE' }]);
      writeFileSync(file, stranger.cert);
      void connect();
      await vi.waitFor(() => expect(server.logins).toEqual(['tls']));
    } finally {
      await database.close();
    }
  });

  test('the role of a URL file is read again', async () => {
    const file = join(folder, 'url');
    writeFileSync(file, 'postgres://first:one@h/d');
    const { database } = readSettings({ ...LEAST, DATABASE_URL: '', DATABASE_URL_FILE: file });
    writeFileSync(file, 'postgres://second:two@h/d');
    const { readAgain, password } = database.connection;
    expect([(await readAgain()).user, await password?.()]).toEqual(['second', 'two']);
  });

  test('prefer rejects bytes that are injected after the answer of the server', async () => {
    expect(await logIn('sslmode=prefer', 'injected')).toBe('There was an error establishing an SSL connection');
  });

  test('ignores PGSSLMODE when the URL has an sslmode, unlike the driver', async () => {
    process.env.PGSSLMODE = 'require';
    try {
      expect(await logIn('sslmode=disable', ours)).toBe('plain');
    } finally {
      delete process.env.PGSSLMODE;
    }
  });
});
