import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Emulator, startEmulator } from '../../../../src/emulator/index.js';
import { ACCEPT_FEEDS } from '../../../support/accept-feeds.js';
import { takeLeaks } from '../../../support/canaries/capture-leaks.js';
import { type PgBouncer, startPgBouncer } from '../../../support/pgbouncer.js';
import { seededRandom } from '../../../support/virtual-clock.js';
import { Fleet } from '../support/fleet.js';
import { type CrashingPostgres, startCrashingPostgres } from './crashing-postgres.js';
import { DatabaseView, type FeedRow, pidOfHolder } from './database-view.js';
import { Evidence, type Findings } from './evidence.js';
import { type Feed, feedsOf, settingsFor } from './feeds.js';
import { type Leadership, watchLeadership } from './leadership.js';
import { nextStep, type StepKind } from './plan.js';

export interface KillOptions {
  /** The compiled bin. */
  readonly program: string;
  /** Daemons to kill. */
  readonly kills: number;
  /** Number of feeds that each daemon follows. */
  readonly feeds: number;
  /** Runs that the feeds hold at the start, all together. */
  readonly history: number;
  /** Decides what happens and when. */
  readonly seed: number;
  /** The program `pgbouncer`, to go through it in transaction mode; null: straight to PostgreSQL. */
  readonly pgbouncer: string | null;
  /** Kills after which everything is brought to rest and examined. */
  readonly killsAPhase: number;
  readonly log: (line: string) => void;
  /** Ends it, with a rejection. */
  readonly signal: AbortSignal;
}

export interface KillFigures {
  readonly steps: Readonly<Record<StepKind, number>>;
  readonly kills: number;
  readonly runs: number;
  readonly superseded: number;
  /** How often a feed changed hands. */
  readonly epochs: number;
  /** The longest time in which a feed had no leader, milliseconds. */
  readonly longestUnledMs: number;
  /** Everything found against the promises, in words. */
  readonly problems: readonly string[];
}

const MOST_REPLICAS = 3;
/** By whether there is one feed, or several, which take longer on two cores. */
const PACE = {
  one: { leaseMs: 1_000, pollMs: 10, connections: 3 },
  several: { leaseMs: 3_000, pollMs: 250, connections: 5 },
} as const;
/** New runs a second of all feeds, and corrections a minute: a commit is nearly always under way. */
const STREAM = { newRunsPerSecond: 120, correctionsPerMinute: 600 } as const;
const SLOW_MS = 15_000;
const REST = { newRunsPerSecond: 0, correctionsPerMinute: 0 } as const;

/** Daemons follow feeds that do not rest, while they and their database are killed; now and then all is examined. */
export async function runKills(options: KillOptions): Promise<KillFigures> {
  const cleanUps: (() => Promise<unknown>)[] = [];
  try {
    const campaign = await prepare(options, (undo) => cleanUps.push(undo));
    try {
      while (campaign.figures.kills < options.kills) await runPhase(campaign);
    } catch (error) {
      throw new Error(`stuck behind ${JSON.stringify(campaign.figures.steps)}:\n${campaign.fleet.lastWords()}`, {
        cause: error,
      });
    }
    const epochs = (await campaign.view.feeds()).reduce((sum, { epoch }) => sum + epoch, 0);
    return { ...campaign.figures, epochs, longestUnledMs: campaign.leadership.longestUnledMs() };
  } finally {
    for (const undo of cleanUps.reverse()) await undo();
  }
}

interface Campaign {
  readonly options: KillOptions;
  readonly random: () => number;
  readonly feeds: readonly Feed[];
  readonly pace: (typeof PACE)['one' | 'several'];
  readonly emulator: Emulator;
  readonly postgres: CrashingPostgres;
  readonly pooler: PgBouncer | null;
  readonly view: DatabaseView;
  readonly evidence: Evidence;
  readonly leadership: Leadership;
  readonly fleet: Fleet;
  readonly figures: {
    steps: Record<StepKind, number>;
    kills: number;
    runs: number;
    superseded: number;
    problems: string[];
  };
}

async function prepare(options: KillOptions, cleanUp: (undo: () => Promise<unknown>) => void): Promise<Campaign> {
  const { program, pgbouncer, seed, signal } = options;
  // Each seed has scan ids of its own: a recycled id would hide a loss.
  const feeds = feedsOf(options.feeds);
  const pace = feeds.length === 1 ? PACE.one : PACE.several;
  const emulator = await startEmulator({
    seed,
    apiKeys: feeds.map(({ apiKey, organization }) => ({ key: apiKey, organization })),
    history: Math.ceil(options.history / feeds.length),
    switches: { truncatedShare: 0.01 },
  });
  cleanUp(() => emulator.close());
  const postgres = await startCrashingPostgres(signal);
  cleanUp(() => postgres.remove());
  const pooler = pgbouncer === null ? null : await startPgBouncer(pgbouncer, postgres.url, 5);
  cleanUp(async () => pooler?.stop());
  const view = new DatabaseView(postgres.url, signal);
  cleanUp(() => view.close());
  const { settings, remove } = await settingsFor(feeds, emulator.url);
  cleanUp(remove);
  if (feeds.length > 1) {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: postgres.url };
    await promisify(execFile)(process.execPath, [program, 'migrate'], { env });
    await view.rows(ACCEPT_FEEDS, [feeds.map(({ name }) => name), emulator.url]);
  }
  const fleet = new Fleet(program, {
    ...settings,
    SCANFEED_ENVIRONMENT: 'all',
    DATABASE_URL: pooler?.url ?? postgres.url,
    SCANFEED_DATABASE_POOL: String(pace.connections),
    SCANFEED_PAGE_LIMIT: '20',
    SCANFEED_POLL_INTERVAL: `${pace.pollMs}ms`,
    SCANFEED_LEASE_TTL: `${pace.leaseMs}ms`,
    SCANFEED_PENDING_RETRY_INTERVAL: '1s',
    // Recent and full passes would find what the feed loses, and so hide it.
    SCANFEED_RECONCILE_INTERVAL: 'off',
    SCANFEED_RECONCILE_FULL_INTERVAL: 'off',
    SCANFEED_ADMIN_HOST: '127.0.0.1',
    SCANFEED_ADMIN_PORT: '0',
  });
  cleanUp(() => fleet.resize(0));
  await fleet.resize(1);
  const leadership = await watchLeadership(view, feeds.length, signal);
  cleanUp(() => leadership.stop());
  const steps = { leader: 0, any: 0, all: 0, freeze: 0, database: 0, pooler: 0 };
  return {
    options,
    random: seededRandom(seed),
    feeds,
    pace,
    emulator,
    postgres,
    pooler,
    view,
    evidence: new Evidence(emulator, feeds, view),
    leadership,
    fleet,
    figures: { steps, kills: 0, runs: 0, superseded: 0, problems: [] },
  };
}

function ofEach(all: typeof STREAM, feeds: number) {
  const { newRunsPerSecond, correctionsPerMinute } = all;
  return { newRunsPerSecond: newRunsPerSecond / feeds, correctionsPerMinute: correctionsPerMinute / feeds };
}

async function runPhase(campaign: Campaign): Promise<void> {
  const { options, random, feeds, emulator, fleet, figures, leadership } = campaign;
  const replicas = feeds.length > 1 ? MOST_REPLICAS : 1 + Math.floor(random() * MOST_REPLICAS);
  emulator.set(ofEach(STREAM, feeds.length));
  await fleet.resize(replicas);
  const until = Math.min(options.kills, figures.kills + options.killsAPhase);
  while (figures.kills < until) await takeStep(campaign);
  emulator.set(REST);
  const findings = await watched(campaign, 'coming to rest', examineAtRest(campaign));
  const { runs, superseded } = findings;
  Object.assign(figures, { runs, superseded });
  const before = figures.problems.length;
  figures.problems.push(...describe(findings), ...(await leadership.problems()));
  figures.problems.push(...fleet.surprises.splice(0), ...takeLeaks());
  options.log(
    `${figures.kills} kills, ${replicas} replica(s), ${runs} runs, ${superseded} superseded, ` +
      `${findings.lost.length} lost, ${figures.problems.length - before} problems`,
  );
}

async function takeStep(campaign: Campaign): Promise<void> {
  const { random, view, figures, pooler, options } = campaign;
  const step = nextStep(random, pooler !== null);
  if (step.afterCommit) {
    const commits = (await view.feeds()).map(({ lastCommit }) => lastCommit);
    const commit = view.feedsUntil((feeds) =>
      feeds.some(({ lastCommit, holder }, index) => holder !== null && lastCommit !== commits[index]),
    );
    await watched(campaign, 'waiting for a commit', commit);
  }
  await sleep(step.delayMs, undefined, { signal: options.signal });
  figures.steps[step.kind] += 1;
  await watched(campaign, step.kind, STEPS[step.kind](campaign));
}

/** Work that takes longer than anything should is talked about while it lasts, with what the daemons say. */
async function watched<T>({ fleet, options }: Campaign, what: string, work: Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const slow = setTimeout(() => options.log(`slow: ${what}\n${fleet.lastWords()}`), SLOW_MS);
  try {
    return await work;
  } finally {
    clearTimeout(slow);
    const seconds = (performance.now() - startedAt) / 1000;
    if (seconds * 1000 > SLOW_MS) options.log(`${what} took ${seconds.toFixed(1)} s`);
  }
}

const STEPS: Readonly<Record<StepKind, (campaign: Campaign) => Promise<void>>> = {
  leader: async (campaign) => killOne(campaign, pidOfHolder(await anyLeader(campaign))),
  any: (campaign) => killOne(campaign, null),
  all: async (campaign) => {
    for (const pid of campaign.fleet.pids) await killOne(campaign, pid);
  },
  freeze: freezeLeader,
  database: async ({ evidence, postgres, figures }) => {
    await evidence.note();
    await postgres.crash();
    const vanished = await evidence.vanished();
    figures.problems.push(...vanished.map((run) => `${run} was committed and vanished with a crash of the database`));
  },
  pooler: async ({ pooler }) => {
    await pooler?.kill();
    await pooler?.restart();
  },
};

async function killOne({ fleet, figures, random }: Campaign, pid: number | null): Promise<void> {
  const { pids } = fleet;
  const victim = pid !== null && pids.includes(pid) ? pid : pids[Math.floor(random() * pids.length)];
  if (victim !== undefined && (await fleet.kill(victim))) figures.kills += 1;
}

/** Returns the holder of the lease of a feed; null if that has none. */
async function anyLeader({ view, random }: Campaign): Promise<string | null> {
  const feeds = await view.feeds();
  return feeds[Math.floor(random() * feeds.length)]?.holder ?? null;
}

/** Stops a leader until others have its feeds, or alone until its lease is over; then it goes on where it stood. */
async function freezeLeader(campaign: Campaign): Promise<void> {
  const { fleet, view, pace, options } = campaign;
  const holder = await anyLeader(campaign);
  const pid = pidOfHolder(holder);
  if (pid === null || !fleet.pids.includes(pid)) return;
  fleet.signal(pid, 'SIGSTOP');
  try {
    const isElsewhere = (feed: FeedRow) => feed.holder !== null && feed.holder !== holder;
    if (fleet.pids.length > 1) await view.feedsUntil((feeds) => feeds.every(isElsewhere));
    else await sleep(1.5 * pace.leaseMs, undefined, { signal: options.signal });
  } finally {
    fleet.signal(pid, 'SIGCONT');
  }
}

/** The feeds have nothing new; when the database says that they are complete up to now, everything must be there. */
async function examineAtRest({ feeds, view, evidence }: Campaign): Promise<Findings> {
  const since = Date.now();
  const isComplete = ({ completeAsOf }: FeedRow) => completeAsOf !== null && completeAsOf.getTime() > since;
  await view.feedsUntil((rows) => rows.length === feeds.length && rows.every(isComplete));
  const findings = await evidence.examine();
  const pending = async () =>
    (await view.rows<{ n: number }>("SELECT count(*)::int AS n FROM scanfeed.runs WHERE result_state = 'pending'"))[0]
      ?.n;
  while ((await pending()) !== 0) await sleep(100);
  return findings;
}

function describe({ lost, invented, vanished, contradictions }: Findings): readonly string[] {
  return [
    ...lost.map((text) => `lost: ${text}`),
    ...invented.map((text) => `invented: ${text}`),
    ...vanished.map((text) => `vanished: ${text}`),
    ...contradictions,
  ];
}
