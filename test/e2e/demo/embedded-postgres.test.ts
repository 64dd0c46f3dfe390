import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { CommandFailure } from '../../../src/cli/context/exit.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../src/demo/embedded-postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { startTemporaryPostgres } from '../../support/postgres/temporary-server.js';
import { eventually } from '../../support/program/daemon.js';

let parent: string;
/** One cluster serves most tests, each of which starts and stops it. */
let directory: string;
const started: EmbeddedPostgres[] = [];

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'scanfeed-embedded-test-'));
  // The user that the server runs as must be able to reach its folder.
  await chmod(parent, 0o711);
});

beforeEach(() => {
  directory = join(parent, '.scanfeed');
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

afterAll(async () => {
  await rm(parent, { recursive: true, force: true });
});

async function start(port?: number): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ directory, ...(port !== undefined && { port }) });
  started.push(server);
  return server;
}

function run(server: Pick<EmbeddedPostgres, 'url'>, sql: string): Promise<Record<string, unknown>[]> {
  return withConnection(server.url, async (client) => (await client.query<Record<string, unknown>>(sql)).rows);
}

const dataFolder = async () => (await start()).cluster.data;

async function postmasterOf(data: string): Promise<number> {
  return Number((await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]);
}

test('keeps its data and password when it is restarted', async () => {
  const first = await start();
  await run(first, 'CREATE TABLE kept AS SELECT 1 AS n');
  await first.stop();
  const second = await start();
  expect(await run(second, 'SELECT n FROM kept')).toEqual([{ n: 1 }]);
  expect(new URL(second.url).password).toBe(new URL(first.url).password);
});

test('syncs commits to the disk and listens on loopback only', async () => {
  const server = await start();
  const [settings] = await run(
    server,
    `SELECT current_setting('fsync') AS fsync, current_setting('listen_addresses') AS addresses,
            current_setting('unix_socket_directories') AS sockets`,
  );
  expect(settings).toEqual({ fsync: 'on', addresses: '127.0.0.1', sockets: '' });
});

test('stores the password and the URL in files that only their owner can read', async () => {
  const server = await start();
  const file = join(directory, 'pgpass');
  const { password } = new URL(server.url);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).toBe(`127.0.0.1:*:*:scanfeed:${password}\n`);
  expect(password).toHaveLength(32);
  expect((await stat(server.urlFile)).mode & 0o777).toBe(0o600);
  expect(await readFile(server.urlFile, 'utf8')).toBe(`${server.url}\n`);
});

test('rejects a connection when the password is wrong', async () => {
  const server = await start();
  const url = new URL(server.url);
  url.password = 'guessed';
  await expect(run({ url: url.href }, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' });
});

test('chooses another port when the requested one is in use', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const server = await start(port);
  expect(server.port).not.toBe(port);
  expect(await run(server, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  holder.close();
});

test('refuses a second start, and does not affect the first, when both use the same folder', async () => {
  const first = await start();
  await expect(startEmbeddedPostgres({ directory })).rejects.toThrow(
    / If the demo already runs \(process \d+\), stop it/,
  );
  expect(await run(first, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

test('recovers its commits when it crashed', async () => {
  const data = await dataFolder();
  const [first] = started;
  await run(first as EmbeddedPostgres, 'CREATE TABLE survivor AS SELECT 1 AS n');
  process.kill(await postmasterOf(data), 'SIGKILL');
  await (first as EmbeddedPostgres).stop();
  expect(await exists(join(data, 'postmaster.pid'))).toBe(true);
  expect(await run(await start(), 'SELECT n FROM survivor')).toEqual([{ n: 1 }]);
});

test('waits for the remaining processes when the previous server was killed', async () => {
  const data = await dataFolder();
  const [first] = started;
  const [checkpointer] = await run(
    first as EmbeddedPostgres,
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'",
  );
  const orphan = Number(checkpointer?.pid);
  process.kill(orphan, 'SIGSTOP'); // so that it does not notice the end of the postmaster
  process.kill(await postmasterOf(data), 'SIGKILL');
  await (first as EmbeddedPostgres).stop();
  const second = start();
  await eventually(() => readFile(join(directory, 'postgres.log'), 'utf8')).toContain(
    'pre-existing shared memory block',
  );
  process.kill(orphan, 'SIGCONT');
  expect(await run(await second, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

test('ignores the lock file of a crash when its process id now belongs to another program', async () => {
  const data = await dataFolder();
  await started[0]?.stop();
  // PostgreSQL itself only ignores its parent and the processes of other users.
  const { uid, gid } = await stat(data);
  const other = spawn('/bin/sleep', ['600'], { uid, gid, stdio: 'ignore' });
  try {
    await writeFile(join(data, 'postmaster.pid'), `${other.pid}\n${data}\n1700000000\n5432\n\n127.0.0.1\n`);
    expect(await run(await start(), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  } finally {
    other.kill();
  }
});

test('repeats the initialization when it was interrupted', async () => {
  directory = join(parent, 'cut-off');
  const data = await dataFolder();
  await started[0]?.stop();
  await rm(data, { recursive: true });
  await mkdir(join(`${data}.new`, 'base'), { recursive: true });
  expect(await run(await start(), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

test('reports the remedy when the password file is missing', async () => {
  directory = join(parent, 'lost');
  await (await start()).stop();
  await rm(join(directory, 'pgpass'));
  const failure = await start().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(CommandFailure);
  expect(String(failure)).toContain(`Remove the folder ${directory} to start over`);
});

test.runIf(process.getuid?.() === 0)(
  'stores the data elsewhere when it runs as root and other users cannot enter the folder',
  async () => {
    directory = join(parent, 'closed', 'data');
    await mkdir(dirname(directory), { mode: 0o700 });
    const first = await start();
    try {
      expect(first.cluster.directory).not.toBe(directory);
      await run(first, 'CREATE TABLE kept AS SELECT 1 AS n');
      await first.stop();
      expect(await run(await start(), 'SELECT n FROM kept')).toEqual([{ n: 1 }]);
    } finally {
      await Promise.all(started.splice(0).map((server) => server.stop()));
      await rm(first.cluster.directory, { recursive: true });
    }
  },
);

test('leaves no server running when the start is aborted', async () => {
  const reason = new Error('enough');
  const aborted = startEmbeddedPostgres({ directory, signal: AbortSignal.abort(reason) });
  await expect(aborted).rejects.toBe(reason);
  expect(await run(await start(), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

test('deletes the files of a temporary server when it stops', async () => {
  const server = await startTemporaryPostgres();
  expect(await run(server, 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
  await server.stop();
  expect(await exists(server.directory)).toBe(false);
});

test('stops when the process that started it is killed', async () => {
  const launcher = join(dirname(inject('programPath')), 'demo', 'embedded-postgres', 'index.js');
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(launcher)};
    const { url } = await startEmbeddedPostgres({ directory: ${JSON.stringify(directory)} });
    console.log(url);
    setInterval(() => {}, 60_000);
  `;
  const owner = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(owner, 'exit').then(([code]) => Promise.reject(new Error(`The owner ended with ${code}`)));
  const [url] = (await Promise.race([once(createInterface(owner.stdout), 'line'), exited])) as [string];
  await withConnection(url, async (client) => {
    const ended = new Promise<void>((resolve) => client.once('end', resolve));
    owner.kill('SIGKILL');
    await expect(exited).rejects.toThrow();
    await ended;
  });
  // The next start waits for the shutdown if it is still in progress.
  expect(await run(await start(), 'SELECT 1 AS n')).toEqual([{ n: 1 }]);
});

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}
