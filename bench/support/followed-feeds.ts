import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { ACCEPT_FEEDS } from '../../test/support/accept-feeds.js';
import type { ServiceAddress, ServiceConfig } from '../service/protocol.js';
import { type BenchService, startService } from '../service/start.js';
import { type BenchDaemon, startDaemon } from './daemon.js';
import type { BenchDatabase, BenchServer } from './postgres.js';
import { migratedDatabase } from './scanfeed-sync.js';
import type { Scope } from './scope.js';

/** Memory of the container of a thousand feeds, MiB. */
const CONTAINER_MIB = 512;
const CHECK_INTERVAL_MS = 500;
const SCHEMAS_PER_QUERY = 100;

/** Feeds of a file, 200 runs each, with a daemon that follows them. */
export interface FollowedFeeds {
  readonly service: BenchService;
  readonly database: BenchDatabase;
  readonly daemon: BenchDaemon;
  /** Their names, in the order of the organizations. */
  readonly names: readonly string[];
  /**
   * Returns the rows of a query in each schema with feeds, those of a hundred schemas by one statement. None while one of the
   * schemas has no tables yet.
   */
  queryAll<R extends pg.QueryResultRow>(
    client: pg.Client,
    query: QueryOfSchema,
    values?: readonly unknown[],
  ): Promise<R[]>;
  /** Starts another daemon that follows the same feeds. */
  startAnother(): BenchDaemon;
  /** Returns when the last of these feeds reached its end, milliseconds since 1970. */
  reachEnd(feeds: readonly string[]): Promise<number>;
  /** Resolves once all stored documents have been searched for fields of typed views. */
  waitForTypedViews(): Promise<void>;
}

/** Returns a query of the tables in a schema. */
export type QueryOfSchema = (schema: string) => string;

export interface FollowOptions {
  readonly service?: Partial<ServiceConfig>;
  /** Whether each feed has a schema, which the daemon creates. Otherwise all are in the one that has been created. */
  readonly hasSchemaEach?: boolean;
}

export async function followFeeds(
  scope: Scope,
  server: BenchServer,
  feeds: number,
  { service: config = {}, hasSchemaEach = false }: FollowOptions = {},
): Promise<FollowedFeeds> {
  const names = Array.from({ length: feeds }, (_, index) => `feed-${index}`);
  const schemas = hasSchemaEach ? names.map((_, index) => `feed_${index}`) : ['scanfeed'];
  const service = await startService(scope, { ...config, history: 200, organizations: feeds });
  const database = hasSchemaEach ? await server.createDatabase() : await migratedDatabase(server);
  if (!hasSchemaEach) await database.withClient((client) => client.query(ACCEPT_FEEDS, [names, service.url]));
  const settings = {
    SCANFEED_FEEDS_FILE: await writeFeedsFile(scope, names, schemas, service),
    SCANFEED_LOG_LEVEL: 'info',
    MALLOC_MMAP_THRESHOLD_: '16384', // as the chart does
  };
  const start = () => startDaemon(scope, service, database, settings, CONTAINER_MIB);
  const daemon = start();
  const queryAll: FollowedFeeds['queryAll'] = (client, query, values) => queryEach(client, schemas, query, values);
  return {
    ...{ service, database, daemon, names, queryAll },
    startAnother: start,
    reachEnd: (which) => allReachEnd({ daemon, database, queryAll }, which),
    waitForTypedViews: () => untilDocumentsSearched({ daemon, database, queryAll }),
  };
}

async function queryEach<R extends pg.QueryResultRow>(
  client: pg.Client,
  schemas: readonly string[],
  query: QueryOfSchema,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const rows: R[] = [];
  try {
    for (let from = 0; from < schemas.length; from += SCHEMAS_PER_QUERY) {
      const part = schemas.slice(from, from + SCHEMAS_PER_QUERY);
      const result = await client.query<R>(part.map((schema) => query(schema)).join(' UNION ALL '), [...values]);
      rows.push(...result.rows);
    }
    return rows;
  } catch (error) {
    const undefinedTable = '42P01';
    if ((error as { code?: unknown }).code === undefinedTable) return [];
    throw error;
  }
}

/** Writes a feeds file and the keys. */
export async function writeFeedsFile(
  scope: Scope,
  names: readonly string[],
  schemas: readonly string[],
  { url, apiKeys }: ServiceAddress,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-feeds-'));
  scope.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'keys'));
  const feeds = await Promise.all(
    names.map(async (name, index) => {
      const apiKeyFile = join(folder, 'keys', String(index));
      await writeFile(apiKeyFile, apiKeys[index] ?? '');
      return { name, baseUrl: url, apiKeyFile, schema: schemas[index] ?? schemas[0] };
    }),
  );
  const path = join(folder, 'feeds.json');
  await writeFile(path, JSON.stringify(feeds));
  return path;
}

type Asked = Pick<FollowedFeeds, 'daemon' | 'database' | 'queryAll'>;

/** Repeats a query until its result is not null. */
function queryUntil<T>({ daemon, database }: Asked, query: (client: pg.Client) => Promise<T | null>): Promise<T> {
  return database.withClient(async (client) => {
    for (;;) {
      daemon.assertRunning();
      const askedAt = performance.now();
      const answer = await query(client);
      if (answer !== null) return answer;
      // A query of a thousand schemas takes long, and must not be what the server is busy with.
      await sleep(Math.max(CHECK_INTERVAL_MS, 20 * (performance.now() - askedAt)));
    }
  });
}

function allReachEnd(asked: Asked, feeds: readonly string[]): Promise<number> {
  return queryUntil(asked, async (client) => {
    const ended = await asked.queryAll<{ at: number }>(
      client,
      (schema) =>
        `SELECT extract(epoch FROM end_reached_at)::double precision * 1000 AS at FROM ${schema}.feeds
         WHERE name = ANY ($1) AND end_reached_at IS NOT NULL`,
      [feeds],
    );
    return ended.length === feeds.length ? Math.max(...ended.map(({ at }) => at)) : null;
  });
}

async function untilDocumentsSearched(asked: Asked): Promise<void> {
  await queryUntil(asked, async (client) => {
    const behind = await asked.queryAll(
      client,
      (schema) =>
        `SELECT 1 AS behind FROM ${schema}.report_progress AS progress
         WHERE EXISTS (SELECT FROM ${schema}.runs WHERE change_seq > progress.change_seq)`,
    );
    return behind.length === 0 ? true : null;
  });
}
