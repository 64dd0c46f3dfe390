import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, type Bench, type Figure, whole } from '../support/figure.js';
import { type FollowedFeeds, followFeeds } from '../support/followed-feeds.js';
import { type BenchDatabase, type BenchServer, startServer } from '../support/postgres.js';
import { cpuMs, memoryOf, treeCpuMs } from '../support/process-figures.js';
import { inScope, type Scope } from '../support/scope.js';
import { median, percentile } from '../support/statistics.js';
import { measureTakeover } from '../support/takeover.js';

const MIB = 1024 * 1024;
const POLL_MS = 5_000;
/** New runs a second of all feeds together, while the lag is measured. */
const NEW_RUNS_PER_SECOND = 20;
const SCRAPES = 9;
/** Time between two scrapes, milliseconds: longer than a response waits after the previous one (docs/decisions/0016). */
const PAUSE_OF_SCRAPES_MS = 2_500;
const ROUNDS = 3;
const SLOW_LATENCY_MS = 25_000;

export interface Sizes {
  /** Numbers of feeds. */
  readonly few: number;
  readonly some: number;
  readonly many: number;
  /** Number of feeds whose organizations are slow, among `some`. */
  readonly slow: number;
  readonly settlesMs: number;
  readonly restsMs: number;
  readonly runsArriveMs: number;
  /** Time in which the last of them are stored. */
  readonly lastRunsMs: number;
}

export const FULL: Sizes = {
  ...{ few: 10, some: 200, many: 1_000, slow: 12 },
  ...{ settlesMs: 60_000, restsMs: 30_000, runsArriveMs: 60_000, lastRunsMs: 30_000 },
};
export const QUICK: Sizes = {
  ...{ few: 10, some: 20, many: 50, slow: 2 },
  ...{ settlesMs: 2_000, restsMs: 5_000, runsArriveMs: 10_000, lastRunsMs: 10_000 },
};

export const manyFeeds: Figure = {
  name: 'many-feeds',
  title: 'Many feeds in one process',
  method:
    'One daemon follows the feeds of a file, with 200 runs each, in one set of tables. The options of the image are those for a container of 512 MiB, and `MALLOC_MMAP_THRESHOLD_` is 16384, as in the chart. All other settings have their defaults. Figures are medians of three rounds; peak memory is the highest of the three, and lags are those of all rounds together.\n\n- *At rest* lasts 30 s. It begins at least a minute after all histories are stored, once all documents have been searched for typed views. Processor time is a share of one core.\n- *A scrape* is one response of `/metrics`, from request to last byte; its duration is the median of nine.\n- *The lag* is measured while new runs arrive. It is the time from the moment at which the feed lists a run until its row is committed.\n- *Slow organizations*: the services of twelve of the 200 feeds take 25 s per response. The lag of all other feeds is measured after they have read their histories.\n- *The takeover*: a second daemon is started. Once each of the two leads at least 45 % of the feeds, the first daemon is killed with SIGKILL. The takeover ends when the second daemon leads every feed.',
  onDemand: true,
  measure: async ({ scope, quick, note }) => {
    const sizes = quick ? QUICK : FULL;
    const server = await startServer(scope, { track_commit_timestamp: 'on' });
    const rounds: Round[] = [];
    while (rounds.length < (quick ? 1 : ROUNDS)) rounds.push(await measureRound(server, sizes, note));
    const [few, many] = [inAll(rounds.map((round) => round.few)), inAll(rounds.map((round) => round.many))];
    const slow = rounds.flatMap((round) => round.slow);
    const someTakeoverMs = median(rounds.map((round) => round.someTakeoverMs));
    const manyTakeoverMs = median(rounds.map((round) => round.manyTakeoverMs));
    const row = (what: string, read: (of: Measured) => string) => [what, read(few), '', read(many)];
    return {
      postgresVersion: server.version,
      table: {
        head: ['', ...[sizes.few, sizes.some, sizes.many].map((feeds) => `${whole(feeds)} feeds`)],
        rows: [
          row('start until every history is stored', ({ historyMs }) => seconds(historyMs)),
          row('peak memory until then', ({ peak }) => `${Math.round(peak / MIB)} MiB`),
          row('at rest: statements per second', ({ statements }) => statements.toFixed(1)),
          row('at rest: processor time of scanfeed', ({ own }) => `${own.toFixed(1)} %`),
          row('at rest: processor time of PostgreSQL', ({ postgres }) => `${postgres.toFixed(1)} %`),
          row('at rest: memory', ({ resident }) => `${Math.round(resident / MIB)} MiB`),
          row('lines of a scrape', ({ lines }) => whole(lines)),
          row('duration of a scrape', ({ scrapeMs }) => `${Math.round(scrapeMs)} ms`),
          row('lag of a new run: median, 99 %', ({ lags }) => medianAnd99(lags)),
          ['the same with slow organizations', '', medianAnd99(slow), ''],
          ['takeover after a crash', '', seconds(someTakeoverMs), seconds(manyTakeoverMs)],
        ],
      },
      wanted: [
        atMost('statements per second at rest', many.statements, 60, ''),
        atMost('processor time of scanfeed at rest', many.own, 15, '%', 1),
        atMost('processor time of PostgreSQL at rest', many.postgres, 5, '%', 1),
        atMost('memory at rest', many.resident / MIB, 220, 'MiB'),
        atMost('peak memory while the histories are read', many.peak / MIB, 400, 'MiB'),
        atMost('99th percentile of the lag of a new run', percentile(many.lags, 0.99) / 1000, 5.5, 's', 1),
        atMost('the same with slow organizations', percentile(slow, 0.99) / 1000, 6, 's', 1),
        atMost('lines of a scrape', many.lines, 15_000, ''),
        atMost('duration of a scrape', many.scrapeMs, 50, 'ms'),
        atMost(`takeover of ${sizes.some} feeds`, someTakeoverMs / 1000, 20, 's', 1),
        atMost(`takeover of ${sizes.many} feeds`, manyTakeoverMs / 1000, 20, 's', 1),
      ],
    };
  },
};

export interface Measured {
  readonly historyMs: number;
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

interface Round {
  readonly few: Measured;
  readonly many: Measured;
  /** Lags of the feeds whose organizations are not slow. */
  readonly slow: readonly number[];
  readonly someTakeoverMs: number;
  readonly manyTakeoverMs: number;
}

async function measureRound(server: BenchServer, sizes: Sizes, note: Bench['note']): Promise<Round> {
  const few = await inScope(async (own) => measureFeeds(await followFeeds(own, server, sizes.few), server, sizes));
  note(`measured ${sizes.few} feeds: ${describe(few)}`);
  const slow = await inScope((own) => lagsAmongSlow(own, server, sizes));
  note(`measured slow organizations: ${medianAnd99(slow)}`);
  const someTakeoverMs = await inScope(async (own) => {
    const followed = await followFeeds(own, server, sizes.some);
    await followed.reachEnd(followed.names);
    return measureTakeover(followed);
  });
  note(`measured the takeover of ${sizes.some} feeds: ${seconds(someTakeoverMs)}`);
  const [many, manyTakeoverMs] = await inScope(async (own) => {
    const followed = await followFeeds(own, server, sizes.many);
    return [await measureFeeds(followed, server, sizes), await measureTakeover(followed)] as const;
  });
  note(`measured ${sizes.many} feeds: ${describe(many)}, takeover ${seconds(manyTakeoverMs)}`);
  return { few, many, slow, someTakeoverMs, manyTakeoverMs };
}

/** The medians of several rounds; of the peaks, the highest one; and the lags of all rounds. */
function inAll(rounds: readonly Measured[]): Measured {
  const medianOf = (read: (of: Measured) => number) => median(rounds.map(read));
  return {
    historyMs: medianOf(({ historyMs }) => historyMs),
    peak: Math.max(...rounds.map(({ peak }) => peak)),
    resident: medianOf(({ resident }) => resident),
    statements: medianOf(({ statements }) => statements),
    own: medianOf(({ own }) => own),
    postgres: medianOf(({ postgres }) => postgres),
    lines: medianOf(({ lines }) => lines),
    scrapeMs: medianOf(({ scrapeMs }) => scrapeMs),
    lags: rounds.flatMap(({ lags }) => lags),
  };
}

export function describe({ historyMs, peak, resident, statements, own, postgres, scrapeMs, lags }: Measured): string {
  const memory = [peak, resident].map((bytes) => `${Math.round(bytes / MIB)} MiB`).join(' and ');
  const used = [own, postgres].map((percent) => `${percent.toFixed(1)} %`).join(' and ');
  return `${seconds(historyMs)}, ${memory}, ${used}, ${statements.toFixed(1)} statements/s, scrape ${Math.round(scrapeMs)} ms, lag ${medianAnd99(lags)}`;
}

export async function measureFeeds(followed: FollowedFeeds, server: BenchServer, sizes: Sizes): Promise<Measured> {
  const { daemon, database, names } = followed;
  const historyMs = (await followed.reachEnd(names)) - daemon.startedAt;
  const { peak } = memoryOf(daemon.pid);
  await sleep(sizes.settlesMs);
  await followed.waitForTypedViews();
  const rest = await atRest(daemon.pid, server, database, sizes.restsMs);
  const { resident } = memoryOf(daemon.pid);
  const scraped = await scrape(await daemon.adminUrl());
  const lags = await lagsOfNewRuns(followed, names, sizes);
  return { historyMs, peak, resident, ...rest, ...scraped, lags };
}

/** Returns the lags of the feeds whose organizations are not slow. */
async function lagsAmongSlow(scope: Scope, server: BenchServer, sizes: Sizes): Promise<readonly number[]> {
  const service = { slowOrganizations: sizes.slow, slowLatencyMs: SLOW_LATENCY_MS };
  const followed = await followFeeds(scope, server, sizes.some, { service });
  const others = followed.names.slice(sizes.slow);
  await followed.reachEnd(others);
  return lagsOfNewRuns(followed, others, sizes);
}

/** Returns the lags of the runs that arrive in some of the feeds, milliseconds. They arrive in all of them. */
async function lagsOfNewRuns(
  { service, database, names, queryAll }: FollowedFeeds,
  feeds: readonly string[],
  { runsArriveMs, lastRunsMs }: Sizes,
): Promise<readonly number[]> {
  const from = Date.now() + POLL_MS;
  service.deliverNewRuns(NEW_RUNS_PER_SECOND / names.length);
  await sleep(runsArriveMs);
  service.deliverNewRuns(0);
  await sleep(lastRunsMs);
  const rows = await database.withClient((client) =>
    queryAll<{ ms: number }>(
      client,
      (schema) =>
        `SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - delivered_at)::double precision * 1000 AS ms
         FROM ${schema}.runs WHERE delivered_at > to_timestamp($1) AND feed = ANY ($2)`,
      [from / 1000, feeds],
    ),
  );
  return rows.map(({ ms }) => ms);
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

/** Scrapes once in advance, then measures. */
async function scrape(adminUrl: string) {
  const read = () => fetch(`${adminUrl}/metrics`).then((response) => response.text());
  const lines = (await read()).split('\n').length;
  const durations: number[] = [];
  while (durations.length < SCRAPES) {
    await sleep(PAUSE_OF_SCRAPES_MS);
    const begunAt = performance.now();
    await read();
    durations.push(performance.now() - begunAt);
  }
  return { scrapeMs: median(durations), lines };
}

export function medianAnd99(lags: readonly number[]): string {
  return [0.5, 0.99].map((share) => seconds(percentile(lags, share))).join(', ');
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
