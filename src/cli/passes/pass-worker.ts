import { createProcessBudget } from '../../daemon/memory.js';
import { obeyRetryAfter } from '../../service/http/obey-retry-after.js';
import type { FeedRow } from '../../storage/feeds/feeds.js';
import { createPageLimit } from '../../sync/page/page-limit.js';
import type { PassContext } from '../../sync/passes/pass-context.js';
import { createPassRunner, type PassRunner } from '../../sync/passes/run-passes.js';
import type { FeedService, Pass, ReadingProgress } from '../../sync/ports/index.js';
import { createResultLoader } from '../../sync/results/resolve-truncated.js';
import { createRetryWakeUp } from '../../sync/results/retry-wake-up.js';
import { createIdleGate } from '../../sync/waiting/idle-gate.js';
import type { CommandProcess } from '../context/command-process.js';
import { CommandFailure } from '../context/exit.js';
import { type FeedCommandContext, openFeedStore, requireLease } from '../context/with-feed.js';
import { withService } from '../context/with-service.js';
import { counted, formatSeconds, formatTime } from '../terminal/format.js';
import type { ProgressLine } from '../terminal/progress-line.js';

/** Maximum number of prefetched pages. */
const PAGES_AHEAD = 4;
/** Time for which a pass is left to another process that has advanced it, milliseconds. */
const LEAVE_MS = 10_000;

type Work = FeedCommandContext<'service' | 'pending'>;

/** Runs passes in place of a daemon. */
export interface PassWorker {
  /**
   * Runs a slice under the current lease epoch. Returns `left` if another process runs the pass, and `none` without a pass.
   * @throws Failure
   */
  runSlice(signal: AbortSignal): Promise<'ran' | 'left' | 'none'>;
}

/** Opens a worker for the passes of this kind, oldest first. It sends no request before a slice is run. */
export async function withPassWorker(
  pass: Pick<Pass, 'id' | 'kind'>,
  work: Work,
  { clock }: Pick<CommandProcess, 'clock'>,
  progress: ProgressLine,
  use: (worker: PassWorker) => Promise<void>,
): Promise<void> {
  const { settings, feed } = work;
  const connections = settings.feed.resolveConcurrency + 1;
  await withService(settings.service, feed, connections, async (service) => {
    let leaveUntil = Number.NEGATIVE_INFINITY;
    const run = createSlices(pass, work, obeyRetryAfter(service, clock), clock, progress);
    await use({
      runSlice: async (signal) => {
        if (clock.monotonic() < leaveUntil) return 'left';
        const outcome = await run(signal);
        if (outcome === 'none') return outcome;
        if (outcome === 'fenced') {
          leaveUntil = clock.monotonic() + LEAVE_MS;
          return 'left';
        }
        if (outcome === 'stuck') await clock.sleep(settings.feed.pollIntervalMs, signal);
        return 'ran';
      },
    });
  });
}

/** Runs each slice under the current lease epoch, and keeps the state of the pass while the epoch stays the same. */
function createSlices(
  { id, kind }: Pick<Pass, 'id' | 'kind'>,
  work: Work,
  service: FeedService,
  clock: CommandProcess['clock'],
  line: ProgressLine,
) {
  const { feed } = work;
  let present: Pass | null = null;
  const showProgress = (progress: ReadingProgress) =>
    line.show(() => (present?.id === id ? '' : 'running an earlier pass first: ') + describePassProgress(progress));
  const context = contextOf(work, service, clock, showProgress);
  const find = async () => {
    present = await context.store.nextPass(feed.name, kind);
    return present;
  };
  let current: { readonly epoch: number; readonly runner: PassRunner } | null = null;
  return async (signal: AbortSignal): ReturnType<PassRunner['runSlice']> => {
    const lease = await requireLease(work);
    if (current?.epoch !== lease.epoch) {
      await requireSameFeed(work);
      current = { epoch: lease.epoch, runner: createPassRunner(find, lease, context, createIdleGate()) };
    }
    try {
      return await current.runner.runSlice(signal);
    } catch (error) {
      if (signal.aborted) return 'more';
      throw error;
    }
  };
}

/** Rejects if a daemon has taken the lease with other settings, which change the pages to read. */
async function requireSameFeed({ feeds, feed }: Work): Promise<void> {
  const now = await feeds.find(feed.name);
  const settingsOf = (row: FeedRow | undefined) => JSON.stringify([row?.baseUrl, row?.filters]);
  if (settingsOf(now) === settingsOf(feed)) return;
  throw new CommandFailure(`the address or the filters of the feed ${feed.name} have changed: run the command again`);
}

/** Creates the context of a pass with the stored filters of the feed, as the daemon does. */
function contextOf(
  work: Work,
  service: FeedService,
  clock: CommandProcess['clock'],
  showProgress: (progress: ReadingProgress) => void,
): PassContext {
  const { settings, feed } = work;
  const { markdown, pageLimit: pageSize, resolveConcurrency: concurrency } = settings.feed;
  const { memoryBudgetBytes, pollIntervalMs } = settings.feed;
  const keptDays = settings.database.retention.runs;
  const store = openFeedStore(work, clock);
  const budget = createProcessBudget(memoryBudgetBytes);
  return {
    ...{
      service,
      store,
      clock,
      pollIntervalMs,
      maxHeldPages: PAGES_AHEAD,
      budget,
      retryWakeUp: createRetryWakeUp(clock),
    },
    pageLimit: createPageLimit(pageSize, budget.bytes),
    loader: createResultLoader({ service, store, clock, budget, markdown, concurrency, keptDays }),
    read: { filters: feed.filters, markdown, pageSize },
    observer: {
      committed: () => {},
      pageStored: () => {},
      truncated: () => {},
      reading: (_, progress) => progress !== null && showProgress(progress),
      reconciled: () => {},
      passFinished: () => {},
    },
  };
}

/** Describes the entries read, the rate and the time left. */
export function describePassProgress({ entries, deliveredUpTo, pace }: ReadingProgress): string {
  const parts = [`${counted(entries, 'entry', 'entries')} read`];
  if (deliveredUpTo !== null) parts.push(`delivered up to ${formatTime(deliveredUpTo)}`);
  if (pace !== null) parts.push(`${Math.round(pace.entriesPerSecond)}/s`);
  if (pace !== null && pace.secondsLeft !== null) parts.push(`${formatSeconds(pace.secondsLeft)} left`);
  return parts.join(', ');
}
