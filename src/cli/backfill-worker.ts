import { readPresentLease } from '../storage/feed.js';
import { type BackfillTurn, type BackfillWork, createBackfillWork } from '../sync/backfill.js';
import type { BackfillContext } from '../sync/backfill-pages.js';
import { createFeedPauses } from '../sync/feed-pauses.js';
import { createPageLimit } from '../sync/page-limit.js';
import type { FeedFilters, FeedService, FeedStore, ReadingProgress } from '../sync/ports.js';
import { createResultLoader } from '../sync/resolve-truncated.js';
import { createRetryWakeUp } from '../sync/retry-wake-up.js';
import type { CommandProcess } from './command-process.js';
import { CommandFailure } from './exit.js';
import { openFeedStore } from './feed-store.js';
import { counted, humanSeconds } from './human.js';
import { openByteBudget } from './memory.js';
import { patiently } from './patiently.js';
import type { ProgressLine } from './progress-line.js';
import type { FeedAtWork } from './with-feed.js';
import { withService } from './with-service.js';

/** Pages held at once. */
const PAGES_AHEAD = 4;
/** Who was fenced leaves the work to whoever was faster, for so long after that one's last page. */
const LEAVE_MS = 10_000;

type Work = FeedAtWork<'service' | 'pending'>;

/** Reads what was asked for in place of a daemon. */
export interface BackfillWorker {
  /** Reads for a while, under the epoch of now; false: somebody else does. */
  reads(signal: AbortSignal): Promise<boolean>;
}

/** A worker for one command; the service is not asked before it has something to read. */
export async function withBackfillWorker(
  work: Work,
  { clock }: Pick<CommandProcess, 'clock'>,
  progress: ProgressLine,
  use: (worker: BackfillWorker) => Promise<void>,
): Promise<void> {
  const { settings, feed } = work;
  const connections = settings.feed.resolveConcurrency + 1;
  await withService(settings.service, feed, connections, async (service) => {
    let leaveUntil = Number.NEGATIVE_INFINITY;
    const read = createReader(work, service, clock, progress);
    await use({
      reads: async (signal) => {
        if (clock.monotonic() < leaveUntil) return false;
        const outcome = await patiently(() => read(signal), { clock, signal, onPause: progress.say });
        if (outcome === 'fenced') leaveUntil = clock.monotonic() + LEAVE_MS;
        if (outcome === 'nothing') {
          throw new CommandFailure(`the feed ${feed.name} has read nothing yet: start \`scanfeed run\` first`);
        }
        if (outcome === 'stuck') await clock.sleep(settings.feed.pollIntervalMs, signal);
        return outcome !== 'fenced';
      },
    });
  });
}

/** Reads under the epoch of now, and remembers what it has learned under it. */
function createReader(work: Work, service: FeedService, clock: CommandProcess['clock'], progress: ProgressLine) {
  const { database, tables, feed } = work;
  const context = contextOf(work, service, clock, progress);
  let current: { readonly epoch: number; readonly turns: BackfillWork } | null = null;
  return async (signal: AbortSignal): Promise<BackfillTurn> => {
    const lease = await readPresentLease(database.sql, tables, feed.name);
    if (lease === null) throw new CommandFailure(`the feed ${feed.name} has been removed`);
    if (current?.epoch !== lease.epoch) {
      current = { epoch: lease.epoch, turns: createBackfillWork(lease, context, createFeedPauses()) };
    }
    try {
      return await current.turns.next(signal);
    } catch (error) {
      if (signal.aborted) return 'read';
      throw error;
    }
  };
}

/** As the daemon would read it: with the filters that the feed is stored with. */
function contextOf(
  work: Work,
  service: FeedService,
  clock: CommandProcess['clock'],
  line: ProgressLine,
): BackfillContext {
  const { settings, feed } = work;
  const { markdown, pageLimit, resolveConcurrency: concurrency, memoryBudgetBytes, pollIntervalMs } = settings.feed;
  const store = withoutHistory(openFeedStore(work, clock));
  const budget = openByteBudget(memoryBudgetBytes);
  return {
    ...{
      service,
      store,
      clock,
      pollIntervalMs,
      pagesAhead: PAGES_AHEAD,
      budget,
      retryWakeUp: createRetryWakeUp(clock),
    },
    pageLimit: createPageLimit(pageLimit, budget.bytes),
    loader: createResultLoader({ service, store, clock, budget, markdown, concurrency }),
    read: { filters: feed.filters as FeedFilters, markdown, pageLimit },
    observer: {
      committed: () => {},
      truncated: () => {},
      reading: (_, progress) => progress !== null && line.show(() => describe(progress)),
      backfilled: () => {},
    },
  };
}

/** The history behind a feed is the daemon's to read. */
function withoutHistory(store: FeedStore): FeedStore {
  const nextBackfill: FeedStore['nextBackfill'] = async (name) => {
    const next = await store.nextBackfill(name);
    return next?.kind === 'request' ? next : null;
  };
  return { ...store, nextBackfill };
}

function describe({ entries, deliveredUpTo, pace }: ReadingProgress): string {
  const parts = [`${counted(entries, 'entry', 'entries')} read`];
  if (deliveredUpTo !== null) parts.push(`delivered up to ${deliveredUpTo.toISOString().slice(0, 19)}Z`);
  if (pace !== null) parts.push(`${Math.round(pace.entriesPerSecond)}/s`);
  if (pace !== null && pace.secondsLeft !== null) parts.push(`${humanSeconds(pace.secondsLeft)} left`);
  return parts.join(', ');
}
