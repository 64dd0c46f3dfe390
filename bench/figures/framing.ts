import { setTimeout as sleep } from 'node:timers/promises';
import { type LineConfig, startSlowLine, type Traffic } from '../../test/support/slow-line.js';
import { startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { writeFeedsFile } from '../support/followed-feeds.js';
import { type BenchServer, startServer } from '../support/postgres.js';
import { memoryOf } from '../support/process-figures.js';
import { migratedDatabase } from '../support/scanfeed-sync.js';
import { inScope } from '../support/scope.js';

const MB = 1_000_000;
const CHECK_INTERVAL_MS = 100;

interface Reading extends LineConfig {
  readonly feeds: number;
}
interface Case extends Omit<Reading, 'announced'> {
  readonly name: string;
}

const CASES: readonly Case[] = [
  {
    ...{ name: '30 feeds, pages of 14 MB', feeds: 30, runs: 400, resultBytes: 70_000, truncated: false },
    bytesPerSecond: 40 * MB,
  },
  {
    ...{ name: '40 results of 30 MB', feeds: 1, runs: 40, resultBytes: 30 * MB, truncated: true },
    bytesPerSecond: 40 * MB,
  },
  {
    ...{ name: '6 results of 30 MB, 3 MB/s', feeds: 1, runs: 6, resultBytes: 30 * MB, truncated: true },
    bytesPerSecond: 3 * MB,
  },
];

export const framing: Figure = {
  name: 'framing',
  title: 'Responses without a Content-Length',
  method:
    'A daemon with the default settings and the options for 256 MiB reads from a service over a line of 40 MB/s, or of the bandwidth that the row names. Time runs from its start until all results are stored. Everything is read twice: once with a Content-Length in each response (*announced*), and once in chunks, which is how a compressing proxy sends them. A request is *cancelled* if the daemon closes its connection before the response ends.',
  onDemand: true,
  measure: async ({ quick, scope, note }) => {
    const server = await startServer(scope);
    const rows: string[][] = [];
    const wanted = [];
    for (const each of quick ? CASES.slice(0, 1) : CASES) {
      const config = quick ? { ...each, feeds: 6 } : each;
      const announced = await read({ ...config, announced: true }, server);
      note(`${each.name}, announced: ${describe(announced).join(', ')}`);
      const chunked = await read({ ...config, announced: false }, server);
      note(`${each.name}, in chunks: ${describe(chunked).join(', ')}`);
      rows.push([`${each.name}, announced`, ...describe(announced)], ['the same in chunks', ...describe(chunked)]);
      wanted.push(
        atMost(`bytes of ${each.name} in chunks`, chunked.bytes / announced.bytes, 1.2, 'times', 2),
        atMost(`time of ${each.name} in chunks`, chunked.seconds / announced.seconds, 1.5, 'times', 2),
        atMost(`most memory of ${each.name} in chunks`, chunked.peakMiB / announced.peakMiB, 1.1, 'times', 2),
      );
    }
    return {
      postgresVersion: server.version,
      table: { head: ['', 'time', 'received', 'requests', 'cancelled', 'most memory'], rows },
      wanted,
    };
  },
};

interface Measured extends Readonly<Traffic> {
  readonly seconds: number;
  readonly peakMiB: number;
}

function read(config: Reading, server: BenchServer): Promise<Measured> {
  return inScope(async (scope) => {
    const line = await startSlowLine(config);
    scope.defer(line.close);
    const names = Array.from({ length: config.feeds }, (_, index) => `feed-${index}`);
    const service = { url: line.url, apiKey: 'key', apiKeys: names };
    const single = config.feeds === 1;
    const database = single ? await migratedDatabase(server) : await server.createDatabase();
    const schemas = names.map((_, index) => (single ? 'scanfeed' : `feed_${index}`));
    const settings = single ? {} : { SCANFEED_FEEDS_FILE: await writeFeedsFile(scope, names, schemas, service) };
    const daemon = startDaemon(scope, service, database, settings);
    const count = schemas
      .map((schema) => `SELECT count(*)::int AS runs FROM ${schema}.runs WHERE result_state = 'complete'`)
      .join(' UNION ALL ');
    for (let stored = 0; stored < config.feeds * config.runs; await sleep(CHECK_INTERVAL_MS)) {
      daemon.assertRunning();
      const rows = await database.query<{ runs: number }>(count).catch(() => []);
      stored = rows.reduce((sum, { runs }) => sum + runs, 0);
    }
    const seconds = (Date.now() - daemon.startedAt) / 1000;
    const peakMiB = memoryOf(daemon.pid).peak / 1024 ** 2;
    await daemon.stop();
    return { ...line.traffic, seconds, peakMiB };
  });
}

function describe({ seconds, bytes, requests, cancelled, peakMiB }: Measured): string[] {
  return [
    `${seconds.toFixed(1)} s`,
    `${whole(bytes / MB)} MB`,
    whole(requests),
    whole(cancelled),
    `${Math.round(peakMiB)} MiB`,
  ];
}
