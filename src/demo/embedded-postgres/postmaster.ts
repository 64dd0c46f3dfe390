import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chown, open, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { CommandFailure } from '../../cli/context/exit.js';
import type { Binaries } from './binaries.js';
import { postGuardian } from './guardian.js';
import { findFreePort, isPortFree } from './ports.js';
import type { ServerUser } from './server-user.js';

/** The superuser of every cluster made here. */
export const superuser = 'scanfeed';

const readyWithinMs = 60_000;
const stopWithinMs = 20_000;

/** Where a cluster lies and whom it belongs to. */
export interface Cluster {
  readonly binaries: Binaries;
  readonly user: ServerUser | null;
  readonly data: string;
  readonly logFile: string;
  readonly password: string;
}

/** A server process that accepts connections. */
export interface Postmaster {
  readonly port: number;
  readonly version: string;
  stop(): Promise<void>;
}

/** Nothing of the user's PG* and locale variables reaches the programs; Windows needs its own to open sockets. */
function childOptions({ user, data }: Pick<Cluster, 'user' | 'data'>) {
  const environment = process.platform === 'win32' ? {} : { env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' } };
  return { cwd: data, ...environment, ...user };
}

/**
 * Makes a cluster in the existing, empty folder `data`. Its collation is the same on every machine: by code point, with
 * Unicode's upper and lower case.
 */
export async function initialiseCluster(cluster: Cluster, flags: readonly string[]): Promise<void> {
  const { binaries, user, data, password } = cluster;
  const passwordFile = join(data, '..', `${basename(data)}.password`);
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user !== null) await chown(passwordFile, user.uid, user.gid);
  // Before version 17 there is no collation of its own; the machine's C knows no upper and lower case beyond ASCII.
  const ofItsOwn = Number(binaries.major) >= 17 ? ['--locale-provider=builtin', '--builtin-locale=C.UTF-8'] : [];
  const locale = ['--encoding=UTF8', '--locale=C', ...ofItsOwn];
  const login = [`--username=${superuser}`, `--pwfile=${passwordFile}`, '--auth=scram-sha-256'];
  try {
    await promisify(execFile)(
      binaries.initdb,
      [`--pgdata=${data}`, ...login, ...locale, ...flags],
      childOptions(cluster),
    );
  } catch (error) {
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new CommandFailure(`PostgreSQL's initdb failed: ${lastLine(stderr ?? '') ?? message}. ${ownServerRemedy}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
}

/** Starts the server on the preferred loopback port if it is free, else on another. */
export async function startOnFreePort(
  cluster: Cluster,
  options: { preferred: number | null; settings: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Postmaster> {
  for (let attempt = 0; attempt < 10; attempt++) {
    // Somebody may take the port between our look and the server's start.
    const port = await findFreePort(attempt === 0 ? options.preferred : null);
    const server = await startPostmaster(cluster, { ...options, port }, signal);
    if (server !== null) return server;
  }
  throw new CommandFailure('PostgreSQL found ten ports taken in a row. Try again.');
}

/** Starts the server on a loopback port and waits until it answers. Null: the port was taken meanwhile. */
export async function startPostmaster(
  cluster: Cluster,
  options: { port: number; settings: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Postmaster | null> {
  const { port } = options;
  const { child, ended } = await spawnServer(cluster, port, options.settings);
  const dismissGuardian = child.pid === undefined ? () => {} : postGuardian(child.pid);
  try {
    const url = urlOf(cluster, port, 'postgres');
    const version = await waitForServer(url, { signal: AbortSignal.any([signal, ended]) });
    return { port, version, stop: () => stopServer(child, dismissGuardian) };
  } catch (error) {
    const died = ended.aborted;
    await stopServer(child, dismissGuardian);
    signal.throwIfAborted();
    if (died && !(await isPortFree(port))) return null;
    const said = died ? lastLine(await readFile(cluster.logFile, 'utf8').catch(() => '')) : (error as Error).message;
    const advice = died ? ownServerRemedy : `Remove ${dirname(cluster.data)} to begin anew.`;
    throw new CommandFailure(
      `PostgreSQL did not start: ${said ?? 'it ended without a word'} (${cluster.logFile}). ${advice}`,
    );
  }
}

const ownServerRemedy =
  'If that cannot be helped, name a PostgreSQL of your own in DATABASE_URL (TEST_DATABASE_URL for the tests).';

async function spawnServer(cluster: Cluster, port: number, settings: Readonly<Record<string, string>>) {
  const common = { listen_addresses: '127.0.0.1', unix_socket_directories: '', port: String(port) };
  const flags = Object.entries({ ...settings, ...common }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const log = await open(cluster.logFile, 'w', 0o600);
  try {
    const child = spawn(cluster.binaries.postgres, ['-D', cluster.data, ...flags], {
      ...childOptions(cluster),
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
    });
    child.unref();
    // At once: a server that refuses to start may be gone before the log is closed.
    const ended = new AbortController();
    child.once('exit', () => ended.abort()).once('error', () => ended.abort());
    return { child, ended: ended.signal };
  } finally {
    await log.close();
  }
}

/** Fast shutdown; an immediate one when that takes too long. May be called again. */
async function stopServer(child: ChildProcess, dismissGuardian: () => void): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.ref();
    child.kill('SIGINT');
    const hurry = setTimeout(() => child.kill('SIGQUIT'), stopWithinMs);
    await exited;
    clearTimeout(hurry);
  }
  dismissGuardian();
}

/** The server speaks no TLS; saying so keeps a PGSSLMODE of the environment from asking for it. */
export function urlOf(cluster: Pick<Cluster, 'password'>, port: number, database: string): string {
  return `postgres://${superuser}:${cluster.password}@127.0.0.1:${port}/${database}?sslmode=disable`;
}

/** Resolves with the server's version (`18.4`) once it answers; rejects when it refuses the login, or in the end. */
export async function waitForServer(
  url: string,
  { signal, withinMs = readyWithinMs }: { signal: AbortSignal; withinMs?: number },
): Promise<string> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await readVersion(url);
    } catch (error) {
      const sqlState = String((error as { code?: unknown }).code ?? '');
      // Class 28 is a refused login, 3D a missing database: waiting does not help.
      if (/^(28|3D)/.test(sqlState) || performance.now() > deadline) throw error;
    }
    await sleep(50, undefined, { signal });
  }
}

async function readVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
    return rows[0]?.server_version ?? 'unknown';
  } finally {
    await client.end();
  }
}

/** Creates the database where it does not exist yet. */
export async function ensureDatabase(maintenanceUrl: string, database: string): Promise<void> {
  const client = new pg.Client({ connectionString: maintenanceUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [database]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${database}`);
  } finally {
    await client.end();
  }
}

/** PostgreSQL's last complaint, else the last line written. */
function lastLine(log: string): string | undefined {
  const lines = log.split('\n').filter((line) => line.trim() !== '');
  const complaint = lines.findLast((line) => /\b(FATAL|PANIC|error):/.test(line)) ?? lines.at(-1);
  return complaint?.replace(/^.*?\b(FATAL|PANIC|error):\s*/, '').trim();
}
