import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { type Cluster, locateCluster } from '../../../../src/demo/embedded-postgres/cluster.js';
import type { EmbeddedPostgres } from '../../../../src/demo/embedded-postgres/index.js';
import { urlOfDatabase } from '../../../support/postgres/maintenance.js';
import { makeTemporaryFolder, type TemporaryFolder } from '../../../support/postgres/temporary-folder.js';
import { unusedPort } from '../../../support/unused-port.js';
import { killServer } from '../support/kill-server.js';
import { startOnPort } from '../support/start-on-port.js';

const INITDB = ['--no-sync', '--set=scram_iterations=16'];

/** One PostgreSQL server with a data folder of its own, to be killed and started again. */
export class PostgresServer {
  #running: EmbeddedPostgres | null = null;
  #url = '';
  #pool: pg.Pool | null = null;

  private constructor(
    private readonly folder: TemporaryFolder,
    readonly cluster: Cluster,
    private readonly settings: Readonly<Record<string, string>>,
    private readonly signal: AbortSignal,
    readonly port: number,
  ) {}

  /** Makes an empty folder for a server. It has no data yet, and does not run. */
  static async create(settings: Readonly<Record<string, string>>, signal: AbortSignal): Promise<PostgresServer> {
    const folder = await makeTemporaryFolder();
    const cluster = await locateCluster(folder.path);
    return new PostgresServer(folder, cluster, settings, signal, await unusedPort());
  }

  /** Only after a start. */
  urlOf(database: string): string {
    return urlOfDatabase(this.#url, database);
  }

  /** Starts it and waits until it answers, as a standby once it is consistent. Creates the data if there are none. */
  async start(): Promise<void> {
    const { port, settings, signal } = this;
    this.#running = await startOnPort({ directory: this.folder.path, port, settings, initdb: INITDB, signal });
    this.#url = this.#running.url;
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

  /** Returns what the server has logged. */
  log(): Promise<string> {
    return readFile(join(this.cluster.directory, 'postgres.log'), 'utf8');
  }

  /** Kills all its processes with SIGKILL. */
  async kill(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    this.#running = null;
    await killServer(this.cluster.data);
    await running.stop(); // ends its child process
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
