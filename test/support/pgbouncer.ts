import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { waitForServer } from './postgres/maintenance.js';
import { unusedPort } from './unused-port.js';

/** PgBouncer in front of one database. */
export interface PgBouncer {
  /** Of the database, by way of PgBouncer. */
  readonly url: string;
  /** Ends the process at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  restart(): Promise<void>;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/** The program, where it is installed: Debian puts it where only root's PATH leads. */
export function findPgBouncer(): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin'];
  for (const folder of folders) {
    const program = join(folder, 'pgbouncer');
    try {
      accessSync(program, constants.X_OK);
      return program;
    } catch {} // the next one
  }
  return null;
}

/** The account `nobody` of Linux systems. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/**
 * Starts PgBouncer on a free loopback port. It refuses to run as root, so there it runs as another account.
 * @param poolSize connections to PostgreSQL at most
 */
export async function startPgBouncer(
  program: string,
  databaseUrl: string,
  poolSize: number,
  mode: 'session' | 'transaction' | 'statement' = 'transaction',
): Promise<PgBouncer> {
  const user = process.getuid?.() === 0 ? NOBODY : null;
  const directory = await mkdtemp(join(tmpdir(), 'scanfeed-pgbouncer-'));
  const port = await unusedPort();
  const config = join(directory, 'pgbouncer.ini');
  await writeFile(config, configuration(databaseUrl, port, { poolSize, mode }, directory), { mode: 0o600 });
  if (user !== null) for (const path of [directory, config]) await chown(path, user.uid, user.gid);
  await chmod(directory, 0o700);
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${port}`;
  url.searchParams.set('sslmode', 'disable');
  let child = await startProcess(program, config, url.href, user);
  const kill = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await ended;
  };
  return {
    url: url.href,
    kill: () => kill('SIGKILL'),
    restart: async () => {
      child = await startProcess(program, config, url.href, user);
    },
    stop: async () => {
      await kill('SIGKILL');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function startProcess(
  program: string,
  config: string,
  url: string,
  user: typeof NOBODY | null,
): Promise<ChildProcess> {
  const child = spawn(program, [config], { ...user, stdio: 'ignore' });
  const ended = new AbortController();
  child.once('exit', () => ended.abort()).once('error', () => ended.abort());
  const forget = () => void child.kill('SIGKILL');
  process.once('exit', forget);
  child.once('exit', () => process.off('exit', forget));
  try {
    await waitForServer(url, { signal: ended.signal });
    return child;
  } catch (error) {
    child.kill('SIGKILL');
    const log = await readFile(join(config, '..', 'pgbouncer.log'), 'utf8').catch(() => '');
    throw new Error(`PgBouncer did not start: ${log.trim() || String(error)}`, { cause: error });
  }
}

/** Accepts every client, as the user of the URL. */
function configuration(
  databaseUrl: string,
  port: number,
  { poolSize, mode }: { readonly poolSize: number; readonly mode: string },
  directory: string,
): string {
  const { hostname, port: serverPort, pathname, username, password } = new URL(databaseUrl);
  const name = decodeURIComponent(pathname.slice(1));
  const quoted = (text: string) => `'${decodeURIComponent(text).replaceAll("'", "''")}'`;
  return `
[databases]
${name} = host=${hostname} port=${serverPort || 5432} dbname=${name} user=${quoted(username)} password=${quoted(password)}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 100
; seconds, as docs/postgresql.md recommends
server_login_retry = 1
logfile = ${join(directory, 'pgbouncer.log')}
`;
}
