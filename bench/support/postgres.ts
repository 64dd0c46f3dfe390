import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/demo/embedded-postgres/index.js';
import { parentOf } from './process-figures.js';
import type { Scope } from './scope.js';

/**
 * PostgreSQL as initdb leaves it: `fsync`, `synchronous_commit` and `full_page_writes` are on. Checkpoints alone are
 * spaced out as on any server that writes a lot, so that they do not fall into one measurement and not into another;
 * a figure may set them otherwise.
 */
const SETTINGS = { max_wal_size: '8GB', checkpoint_timeout: '30min' };

export interface BenchServer {
  readonly version: string;
  /** The process that all of its others are children of. */
  readonly pid: number;
  /** A database of its own, empty. */
  createDatabase(): Promise<BenchDatabase>;
  /** So that dirty pages of what was before are not written during what comes next. */
  checkpoint(): Promise<void>;
}

export interface BenchDatabase {
  readonly url: string;
  query<R extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<R[]>;
  /** The same on one connection, for what is asked again and again, or timed. */
  withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /** Copies the database. No client may be connected. */
  clone(): Promise<BenchDatabase>;
  drop(): Promise<void>;
}

/** @param settings besides those above, or instead of them */
export async function startServer(scope: Scope, settings: Readonly<Record<string, string>> = {}): Promise<BenchServer> {
  const directory = await mkdtemp(join(tmpdir(), 'scanfeed-bench-'));
  scope.defer(() => rm(directory, { recursive: true, force: true }));
  const server = await startEmbeddedPostgres({ directory, settings: { ...SETTINGS, ...settings } });
  scope.defer(() => rm(server.cluster.directory, { recursive: true, force: true }));
  scope.defer(() => server.stop());
  return openServer(scope, server.url, server.cluster.version);
}

async function openServer(scope: Scope, url: string, version: string): Promise<BenchServer> {
  const client = await connect(url);
  scope.defer(() => client.end());
  const backend = Number((await client.query('SELECT pg_backend_pid() AS pid')).rows[0].pid);
  let databases = 0;
  const create = async (template: string): Promise<BenchDatabase> => {
    const name = `bench_${++databases}`;
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    return openDatabase(urlOfDatabase(url, name), {
      clone: () => create(name),
      drop: async () => {
        await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
      },
    });
  };
  return {
    version,
    pid: parentOf(backend),
    createDatabase: () => create('template1'),
    checkpoint: async () => {
      await client.query('CHECKPOINT');
    },
  };
}

function openDatabase(url: string, administration: Pick<BenchDatabase, 'clone' | 'drop'>): BenchDatabase {
  return {
    ...administration,
    url,
    withClient: (work) => withClient(url, work),
    query: (sql, values = []) => withClient(url, async (client) => (await client.query(sql, [...values])).rows),
  };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(url);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

function urlOfDatabase(url: string, name: string): string {
  const own = new URL(url);
  own.pathname = `/${name}`;
  return own.href;
}
