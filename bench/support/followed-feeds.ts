import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceConfig } from '../service/protocol.js';
import { type BenchService, startService } from '../service/start.js';
import { type BenchDaemon, startDaemon } from './daemon.js';
import type { BenchDatabase, BenchServer } from './postgres.js';
import { migratedDatabase } from './scanfeed-sync.js';
import type { Scope } from './scope.js';

/** Memory of the container of a thousand feeds, MiB. */
const CONTAINER_MIB = 512;
const LOOK_EVERY_MS = 500;

/** Feeds of a file, 200 runs each, with a daemon that follows them. */
export interface FollowedFeeds {
  readonly service: BenchService;
  readonly database: BenchDatabase;
  readonly daemon: BenchDaemon;
  /** Their names, in the order of the organizations. */
  readonly names: readonly string[];
  /** Starts another daemon that follows the same feeds. */
  startAnother(): BenchDaemon;
  /** Returns when the last of these feeds reached its end, milliseconds since 1970. */
  reachEnd(feeds: readonly string[]): Promise<number>;
}

export async function followFeeds(
  scope: Scope,
  server: BenchServer,
  feeds: number,
  config: Partial<ServiceConfig> = {},
): Promise<FollowedFeeds> {
  const names = Array.from({ length: feeds }, (_, index) => `feed-${index}`);
  const service = await startService(scope, { ...config, history: 200, organizations: feeds });
  const database = await migratedDatabase(server);
  const settings = {
    SCANFEED_FEEDS_FILE: await writeFeedsFile(scope, names, service),
    SCANFEED_LOG_LEVEL: 'info',
    SCANFEED_TYPED_VIEWS: 'off',
    MALLOC_MMAP_THRESHOLD_: '16384', // as the chart does
  };
  const start = () => startDaemon(scope, service, database, settings, CONTAINER_MIB);
  const daemon = start();
  return {
    ...{ service, database, daemon, names },
    startAnother: start,
    reachEnd: (which) => allReachEnd(daemon, database, which),
  };
}

/** Writes a feeds file and the keys. */
async function writeFeedsFile(scope: Scope, names: readonly string[], { url, apiKeys }: BenchService): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-feeds-'));
  scope.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'keys'));
  const feeds = await Promise.all(
    names.map(async (name, index) => {
      const apiKeyFile = join(folder, 'keys', String(index));
      await writeFile(apiKeyFile, apiKeys[index] ?? '');
      return { name, baseUrl: url, apiKeyFile };
    }),
  );
  const path = join(folder, 'feeds.json');
  await writeFile(path, JSON.stringify(feeds));
  return path;
}

function allReachEnd(daemon: BenchDaemon, database: BenchDatabase, feeds: readonly string[]): Promise<number> {
  return database.withClient(async (client) => {
    for (;;) {
      daemon.assertRunning();
      const { rows } = await client.query<{ ended: number; at: number }>(
        `SELECT count(end_reached_at)::int AS ended, extract(epoch FROM max(end_reached_at))::double precision * 1000 AS at
         FROM scanfeed.feeds WHERE name = ANY ($1)`,
        [feeds],
      );
      if (rows[0]?.ended === feeds.length) return rows[0].at;
      await sleep(LOOK_EVERY_MS);
    }
  });
}
