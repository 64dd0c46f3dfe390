import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findBinaryPackage, prepareBinaries } from '../../../../src/demo/embedded-postgres/binaries.js';
import { makeDataDirectory, newPassword } from '../../../../src/demo/embedded-postgres/cluster-files.js';
import { waitForOrphans } from '../../../../src/demo/embedded-postgres/orphans.js';
import { findFreePort } from '../../../../src/demo/embedded-postgres/ports.js';
import {
  type Cluster,
  initialiseCluster,
  type Postmaster,
  startPostmaster,
  urlOf,
} from '../../../../src/demo/embedded-postgres/postmaster.js';
import { findServerUser, type ServerUser } from '../../../../src/demo/embedded-postgres/server-user.js';
import { makeTemporaryFolder, type TemporaryFolder } from '../../../support/postgres/temporary-folder.js';
import { killServer } from '../support/kill-server.js';

/** Attempts to start on a port; another process may take it in between. */
const START_ATTEMPTS = 20;

/** One PostgreSQL server with a data folder of its own, to be killed and started again. */
export class PostgresServer {
  #postmaster: Postmaster | null = null;
  #pool: pg.Pool | null = null;

  private constructor(
    private readonly folder: TemporaryFolder,
    private readonly cluster: Cluster,
    private readonly settings: Readonly<Record<string, string>>,
    private readonly signal: AbortSignal,
    readonly port: number,
  ) {}

  /** Makes an empty folder for a server. It has no data yet, and does not run. */
  static async create(settings: Readonly<Record<string, string>>, signal: AbortSignal, password = newPassword()) {
    const user = await findServerUser(null);
    const folder = await makeTemporaryFolder(user);
    const { path, data } = folder;
    const binaries = await prepareBinaries(await findBinaryPackage(), user, path);
    const cluster = { binaries, user, data, logFile: join(path, 'postgres.log'), password };
    await makeDataDirectory(cluster.data, user);
    return new PostgresServer(folder, cluster, settings, signal, await findFreePort(null));
  }

  /** Makes a new, empty database cluster in its folder. */
  initialise(): Promise<void> {
    return initialiseCluster(this.cluster, ['--no-sync', '--set=scram_iterations=16']);
  }

  get data(): string {
    return this.cluster.data;
  }

  get user(): ServerUser | null {
    return this.cluster.user;
  }

  get password(): string {
    return this.cluster.password;
  }

  get isRunning(): boolean {
    return this.#postmaster !== null;
  }

  urlOf(database: string): string {
    return urlOf(this.cluster, this.port, database);
  }

  /** Starts it and waits until it answers, as a standby once it is consistent. */
  async start(): Promise<void> {
    await waitForOrphans(this.data, () => sleep(20, undefined, { signal: this.signal }));
    const options = { port: this.port, settings: this.settings };
    for (let attempt = 1; this.#postmaster === null; attempt += 1) {
      if (attempt > START_ATTEMPTS) throw new Error(`port ${this.port} is taken`);
      this.#postmaster = await startPostmaster(this.cluster, options, this.signal);
    }
  }

  /** Runs one statement on a direct connection to the database `scanfeed`. */
  async rows<R extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    this.#pool ??= openPool(this.urlOf('scanfeed'));
    return (await this.#pool.query<R>(text, [...values])).rows;
  }

  /** Returns the number of the next write transaction. */
  async nextTransaction(): Promise<number> {
    const [row] = await this.rows<{ next: string }>('SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next');
    return Number(row?.next);
  }

  /** Returns what the server has logged since it was started last. */
  log(): Promise<string> {
    return readFile(this.cluster.logFile, 'utf8');
  }

  /** Kills all its processes with SIGKILL. */
  async kill(): Promise<void> {
    if (this.#postmaster === null) return;
    const postmaster = this.#postmaster;
    this.#postmaster = null;
    await killServer(this.data);
    await postmaster.stop(); // waits for its end
    await this.#disconnect();
  }

  async remove(): Promise<void> {
    await this.kill();
    await this.folder.remove();
  }

  async #disconnect(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    await pool?.end();
  }
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 4, connectionTimeoutMillis: 5_000 });
  return pool.on('error', () => {}).on('connect', (client) => void client.on('error', () => {}));
}
