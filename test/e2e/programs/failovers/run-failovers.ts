import { type Emulator, startEmulator } from '../../../../src/emulator/index.js';
import { takeLeaks } from '../../../support/canaries/capture-leaks.js';
import { type PgBouncer, startPgBouncer } from '../../../support/pgbouncer.js';
import { seededRandom } from '../../../support/virtual-clock.js';
import { checkAtRest } from './check-at-rest.js';
import { ClaimMonitor, ignoreAway } from './claim-monitor.js';
import { Cluster } from './cluster.js';
import { type FeedUnderTest, makeFeeds } from './feeds.js';
import { Listing } from './listing.js';
import { addNewRuns } from './new-runs.js';
import type { PostgresServer } from './postgres-server.js';
import { FAILOVERS, nextRound, type RoundKind } from './rounds.js';

export interface FailoverOptions {
  /** The compiled bin. */
  readonly program: string;
  readonly failovers: number;
  /** Decides what happens. */
  readonly seed: number;
  /** One server that is killed and started again, without the commits that it had not written, instead of failovers. */
  readonly single: boolean;
  /** The program `pgbouncer`, to go through it in transaction mode; null: straight to PostgreSQL. */
  readonly pgbouncer: string | null;
  readonly log: (line: string) => void;
  /** Ends it, with a rejection. */
  readonly signal: AbortSignal;
}

export interface FailoverFigures {
  readonly kinds: Record<RoundKind, number>;
  failovers: number;
  /** Failovers at which the database lost commits. */
  lossy: number;
  /** Write transactions that the database lost. */
  transactionsLost: number;
  runsListed: number;
  /** Runs that were not stored at their highest revision, of all feeds. */
  runsLost: number;
  checks: number;
  falseClaims: number;
  /** Everything found against the promises, in words. */
  readonly problems: string[];
}

/** Failovers after which everything is brought to rest and checked; the next phase begins with new feeds. */
const FAILOVERS_A_PHASE = 10;
const HISTORY = 2_000;
const HISTORY_PERIOD_MS = 30 * 86_400_000;
/** Makes reading the history last over several failovers. */
const LATENCY_MS = 50;
/** Maximum duration of a command that requests a pass, milliseconds. */
const REQUEST_MS = 10_000;

interface Campaign {
  readonly options: FailoverOptions;
  readonly random: () => number;
  readonly cluster: Cluster;
  readonly pooler: PgBouncer | null;
  readonly monitor: ClaimMonitor;
  readonly figures: FailoverFigures;
}

/** One service with a history of its own, and the feeds that follow it. */
interface Phase {
  readonly emulator: Emulator;
  readonly feeds: readonly FeedUnderTest[];
  readonly listing: Listing;
}

/** Fails a database over repeatedly while daemons follow a feed, and checks its claims. */
export async function runFailovers(options: FailoverOptions): Promise<FailoverFigures> {
  const cleanUps: (() => Promise<unknown>)[] = [];
  const campaign = await prepare(options, (undo) => cleanUps.push(undo));
  try {
    while (campaign.figures.failovers < options.failovers) await runPhase(campaign);
    return campaign.figures;
  } finally {
    for (const undo of cleanUps.reverse()) await undo();
  }
}

async function prepare(options: FailoverOptions, cleanUp: (undo: () => Promise<unknown>) => void): Promise<Campaign> {
  const cluster = await Cluster.start(!options.single, options.signal);
  cleanUp(() => cluster.remove());
  if (!options.single) await cluster.addStandby();
  const pooler = options.pgbouncer === null ? null : await startPgBouncer(options.pgbouncer, cluster.url, 8);
  cleanUp(async () => pooler?.stop());
  const figures: FailoverFigures = {
    kinds: { crash: 0, early: 0, back: 0, split: 0, unclean: 0 },
    failovers: 0,
    lossy: 0,
    transactionsLost: 0,
    runsListed: 0,
    runsLost: 0,
    checks: 0,
    falseClaims: 0,
    problems: [],
  };
  return { options, random: seededRandom(options.seed), cluster, pooler, monitor: new ClaimMonitor(cluster), figures };
}

async function runPhase(campaign: Campaign): Promise<void> {
  const { options, cluster, pooler, random, figures, monitor } = campaign;
  const number = figures.failovers;
  // Each phase has scan ids of its own: a recycled id would hide a loss.
  const emulator = await startEmulator({
    seed: options.seed * 1_000 + number,
    history: HISTORY,
    historyPeriodMs: HISTORY_PERIOD_MS,
    switches: { latencyMs: LATENCY_MS, truncatedShare: 0.01 },
  });
  const feeds = makeFeeds(options.program, emulator, pooler?.url ?? cluster.url, String(number));
  const phase = { emulator, feeds, listing: new Listing(emulator) };
  const rest = addNewRuns(emulator, phase.listing, HISTORY_PERIOD_MS, random);
  const over = new AbortController();
  const monitoring = monitor.run(feeds, phase.listing, over.signal);
  // Rejections are read below.
  monitoring.catch(() => {});
  try {
    for (const { fleet, replicas } of feeds) await fleet.resize(replicas);
    await untilFeedsCommit(campaign, phase, cluster.primary);
    const until = Math.min(options.failovers, number + FAILOVERS_A_PHASE);
    while (figures.failovers < until) await failOver(campaign, phase);
    rest();
    emulator.set({ latencyMs: 0 });
    for (const { lost, problems } of await Promise.all(
      feeds.map((feed) => checkAtRest(feed, phase.listing, campaign)),
    )) {
      figures.runsLost += lost;
      figures.problems.push(...problems);
    }
    over.abort();
    await monitoring;
    const surprises = feeds.flatMap(({ fleet }) => fleet.surprises);
    figures.problems.push(...surprises, ...takeLeaks());
  } catch (error) {
    throw new Error(`stuck after ${figures.failovers} failovers:\n${lastWords(feeds)}`, { cause: error });
  } finally {
    rest();
    over.abort();
    for (const { fleet } of feeds) await fleet.resize(0);
    await emulator.close();
  }
  figures.runsListed += phase.listing.size;
  figures.checks = monitor.count;
  figures.problems.push(...[...monitor.falseClaims.values()].slice(figures.falseClaims));
  figures.falseClaims = monitor.falseClaims.size;
}

const lastWords = (feeds: readonly FeedUnderTest[]) =>
  feeds.map(({ schema, fleet }) => `${schema}: ${fleet.lastWords()}`).join('\n');

async function failOver(campaign: Campaign, phase: Phase): Promise<void> {
  const { options, cluster, random, figures, pooler } = campaign;
  const round = nextRound(figures.failovers, random, options.single);
  if (round.requests === 'before') await request(campaign, phase);
  if (!options.single) await cluster.waitForStandby();
  if (round.held) cluster.holdReplication();
  if (round.requests === 'after') await request(campaign, phase);
  const from = await cluster.primary.nextTransaction();
  const written = async () => (await cluster.primary.nextTransaction()) >= from + round.transactions;
  await cluster.until('the feeds commit', written);
  const lost = await FAILOVERS[round.kind]({
    cluster,
    pooled: pooler !== null,
    untilFeedsCommit: (server) => untilFeedsCommit(campaign, phase, server),
  });
  figures.kinds[round.kind] += 1;
  figures.failovers += 1;
  figures.transactionsLost += lost;
  if (lost > 0) figures.lossy += 1;
  const endedAt = performance.now();
  const [backAfterMs] = await Promise.all([
    untilFeedsCommit(campaign, phase, cluster.primary).then(() => performance.now() - endedAt),
    options.single ? null : cluster.addStandby(),
  ]);
  options.log(
    `${figures.failovers}: ${round.kind}, ${lost} commits lost, requests: ${round.requests}, feeds back after ` +
      `${(backAfterMs / 1000).toFixed(1)} s, ${campaign.monitor.count} checks, ${campaign.monitor.falseClaims.size} false claims`,
  );
}

/** Requests a pass of each feed. A feed may not be ready for one, or the database unavailable. */
async function request({ options }: Campaign, { feeds }: Phase): Promise<void> {
  // Without a daemon that holds the feed, the command would run the whole pass.
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(REQUEST_MS)]);
  await Promise.all(feeds.map(({ request: args, run }) => run(args, signal)));
}

/** Waits until each feed has committed on this server since now. */
async function untilFeedsCommit(campaign: Campaign, { feeds }: Phase, server: PostgresServer): Promise<void> {
  const since = Date.now();
  const hasCommitted = async ({ schema }: FeedUnderTest) => {
    const rows = await server
      .rows<{ at: Date | null }>(`SELECT last_commit_at AS at FROM ${schema}.feeds`)
      .catch(ignoreAway);
    return (rows?.[0]?.at?.getTime() ?? 0) > since;
  };
  const all = async () => (await Promise.all(feeds.map(hasCommitted))).every(Boolean);
  await campaign.cluster.until('each feed commits', all);
}
