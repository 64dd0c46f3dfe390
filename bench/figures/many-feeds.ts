import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BenchService, startService } from '../service/start.js';
import { type BenchDaemon, startDaemon } from '../support/daemon.js';
import { atMost, type Figure, whole } from '../support/figure.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
import { cpuMs, memoryOf, treeCpuMs } from '../support/process-figures.js';
import { migratedDatabase } from '../support/scanfeed-sync.js';
import { inScope, type Scope } from '../support/scope.js';
import { percentile } from '../support/statistics.js';

const MIB = 1024 * 1024;
const POLL_MS = 5_000;
const SETTLES_MS = 10_000;
/** Memory of the container of a thousand feeds, MiB. */
const CONTAINER_MIB = 512;
/** New runs a second of all feeds together, while the lag is measured. */
const NEW_RUNS_PER_SECOND = 20;

export const manyFeeds: Figure = {
  name: 'many-feeds',
  title: 'Many feeds in one process',
  method:
    'One daemon follows the feeds of a file, 200 runs each, in one set of tables, with the default settings: until the history of all of them is stored, at rest from ten seconds after that, and while new runs arrive. The lag is from the moment at which a run can be seen in its feed until its row is committed. A scrape is one answer of /metrics, from request to last byte.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const server = await startServer(scope, { track_commit_timestamp: 'on' });
    const few = await inScope((own) => measureFeeds(own, server, 10, quick));
    note('measured 10 feeds');
    const many = await inScope((own) => measureFeeds(own, server, quick ? 50 : 1_000, quick));
    const row = (what: string, read: (of: Measured) => string) => [what, read(few), read(many)];
    return {
      postgresVersion: server.version,
      table: {
        head: ['', `${few.feeds} feeds`, `${many.feeds} feeds`],
        rows: [
          row('start until every history is stored', ({ historySeconds }) => `${historySeconds.toFixed(1)} s`),
          row('most memory meanwhile', ({ peak }) => `${Math.round(peak / MIB)} MiB`),
          row('at rest: statements a second', ({ statements }) => statements.toFixed(1)),
          row('at rest: scanfeed, of a core', ({ own }) => `${own.toFixed(1)} %`),
          row('at rest: PostgreSQL, of a core', ({ postgres }) => `${postgres.toFixed(1)} %`),
          row('at rest: memory', ({ resident }) => `${Math.round(resident / MIB)} MiB`),
          row('lines of a scrape', ({ lines }) => whole(lines)),
          row('duration of a scrape', ({ scrapeMs }) => `${Math.round(scrapeMs)} ms`),
          row('lag of a new run: median, 99 %', ({ lags }) =>
            [0.5, 0.99].map((share) => `${(percentile(lags, share) / 1000).toFixed(1)} s`).join(', '),
          ),
        ],
      },
      wanted: [
        atMost('statements a second at rest', many.statements, 60, ''),
        atMost('of a core at rest', many.own, 15, '%', 1),
        atMost('PostgreSQL, of a core at rest', many.postgres, 5, '%', 1),
        atMost('memory at rest', many.resident / MIB, 220, 'MiB'),
        atMost('most memory while the histories are read', many.peak / MIB, 400, 'MiB'),
        atMost('99 % of the lag of a new run', percentile(many.lags, 0.99) / 1000, 5.5, 's', 1),
        atMost('lines of a scrape', many.lines, 15_000, ''),
        atMost('duration of a scrape', many.scrapeMs, 50, 'ms'),
      ],
    };
  },
};

interface Measured {
  readonly feeds: number;
  readonly historySeconds: number;
  /** Bytes. */
  readonly peak: number;
  readonly resident: number;
  readonly statements: number;
  /** Percent of a core. */
  readonly own: number;
  readonly postgres: number;
  readonly lines: number;
  readonly scrapeMs: number;
  /** Of new runs, milliseconds. */
  readonly lags: readonly number[];
}

async function measureFeeds(scope: Scope, server: BenchServer, feeds: number, quick: boolean): Promise<Measured> {
  const service = await startService(scope, { history: 200, organizations: feeds });
  const database = await migratedDatabase(server);
  const settings = {
    SCANFEED_FEEDS_FILE: await writeFeedsFile(scope, service),
    SCANFEED_LOG_LEVEL: 'info',
    SCANFEED_TYPED_VIEWS: 'off',
  };
  const daemon = startDaemon(scope, service, database, settings, CONTAINER_MIB);
  const historyEnd = await allReachEnd(daemon, database, feeds);
  const { peak } = memoryOf(daemon.pid);
  await sleep(SETTLES_MS);
  const rest = await atRest(daemon.pid, server, database, quick ? 5_000 : 30_000);
  const { resident } = memoryOf(daemon.pid);
  const scraped = await scrape(await daemon.adminUrl());
  const from = Date.now() + POLL_MS;
  service.deliverNewRuns(NEW_RUNS_PER_SECOND / feeds);
  await sleep(quick ? 10_000 : 60_000);
  const lags = await lagsSince(database, from);
  return {
    ...{ feeds, peak, resident, lags },
    historySeconds: (historyEnd - daemon.startedAt) / 1000,
    ...rest,
    ...scraped,
  };
}

/** Writes a feeds file and the keys. */
async function writeFeedsFile(scope: Scope, { url, apiKeys }: BenchService): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scanfeed-feeds-'));
  scope.defer(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, 'keys'));
  const feeds = await Promise.all(
    apiKeys.map(async (key, index) => {
      const apiKeyFile = join(folder, 'keys', String(index));
      await writeFile(apiKeyFile, key);
      return { name: `feed-${index}`, baseUrl: url, apiKeyFile };
    }),
  );
  const path = join(folder, 'feeds.json');
  await writeFile(path, JSON.stringify(feeds));
  return path;
}

/** Returns when the last feed reached its end, milliseconds since 1970. */
function allReachEnd(daemon: BenchDaemon, database: BenchDatabase, feeds: number): Promise<number> {
  return database.withClient(async (client) => {
    for (;;) {
      daemon.assertRunning();
      const { rows } = await client.query<{ ended: number; at: number }>(
        `SELECT count(end_reached_at)::int AS ended, extract(epoch FROM max(end_reached_at))::double precision * 1000 AS at
         FROM scanfeed.feeds`,
      );
      if (rows[0]?.ended === feeds) return rows[0].at;
      await sleep(500);
    }
  });
}

/** What the daemon and its server take. Each statement is a transaction. */
async function atRest(pid: number, server: BenchServer, database: BenchDatabase, forMs: number) {
  const transactions = async () =>
    (
      await database.query<{ count: number }>(
        'SELECT xact_commit::int AS count FROM pg_stat_database WHERE datname = current_database()',
      )
    )[0]?.count ?? 0;
  const used = async () => ({
    transactions: await transactions(),
    own: cpuMs(pid),
    postgres: treeCpuMs(server.pid),
    at: performance.now(),
  });
  const before = await used();
  await sleep(forMs);
  const after = await used();
  const ms = after.at - before.at;
  return {
    statements: ((after.transactions - before.transactions) / ms) * 1000,
    own: ((after.own - before.own) / ms) * 100,
    postgres: ((after.postgres - before.postgres) / ms) * 100,
  };
}

async function scrape(adminUrl: string) {
  await fetch(`${adminUrl}/metrics`).then((response) => response.text());
  const begunAt = performance.now();
  const text = await fetch(`${adminUrl}/metrics`).then((response) => response.text());
  return { scrapeMs: performance.now() - begunAt, lines: text.split('\n').length };
}

async function lagsSince(database: BenchDatabase, since: number): Promise<readonly number[]> {
  const rows = await database.query<{ ms: number }>(
    `SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - delivered_at)::double precision * 1000 AS ms
     FROM scanfeed.runs WHERE delivered_at > to_timestamp($1)`,
    [since / 1000],
  );
  return rows.map(({ ms }) => ms);
}
