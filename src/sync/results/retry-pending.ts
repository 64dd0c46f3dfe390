import { isValueRefused } from '../../core/errors.js';
import type { FeedContext, LeaderContext } from '../context.js';
import type { UnfinishedWork } from '../lease/unfinished-work.js';
import type { LeaseGrant, PendingReason, PendingRun, PostponedTry } from '../ports/index.js';
import { runRepeatedly } from '../retry/run-repeatedly.js';
import { type LimitedRun, limitConcurrency } from '../waiting/limit-concurrency.js';
import { storeResult } from './store-result.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Maximum number of results to retry in one round. */
const MAX_RUNS_PER_ROUND = 50;
/** The pause is part of the next round, before its retries: the results of a page that was just committed have just been tried. */
const NEXT_ROUND = { pauseMs: 0 };

/**
 * Returns the pause before a pending result is retried, milliseconds (promise 3). It doubles from the first one up to an hour;
 * after seven days it is always a day. Pure.
 */
function pendingPause(attempts: number, pendingForMs: number, firstMs: number): number {
  if (pendingForMs > 7 * DAY_MS) return DAY_MS;
  return Math.min(HOUR_MS, firstMs * 2 ** Math.min(attempts, 30));
}

/** Retries results that could not be loaded before their page was committed, until the lease is lost or the signal aborts. */
export async function retryPending(
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  signal: AbortSignal,
): Promise<void> {
  const { retryWakeUp, settings } = context;
  let more = false;
  await runRepeatedly('result', context, signal, async () => {
    const mayBeDue = more || (await retryWakeUp.sleep(Math.min(settings.pendingRetryMs, MINUTE_MS), signal));
    if (signal.aborted) return 'over';
    if (!mayBeDue && !work.mayHavePending()) return NEXT_ROUND;
    const round = await retryDue(lease, context, signal);
    more = round === 'full';
    return round === 'fenced' ? 'over' : NEXT_ROUND;
  });
}

/**
 * Runs one round. `full`: more results may be due; `fenced`: the lease was lost. Rejects if the store failed, after all other
 * attempts have ended and are stored.
 */
async function retryDue(
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<'full' | 'done' | 'fenced'> {
  const due = await context.store.duePending(lease.feed, MAX_RUNS_PER_ROUND);
  if (due.length === 0) return 'done';
  const limited = limitConcurrency(context.settings.maxResultCommits);
  const tries = await Promise.allSettled(due.map((run) => retryRun(run, lease, limited, context, signal)));
  const outcomes = tries.flatMap((tried) => (tried.status === 'fulfilled' ? [tried.value] : []));
  if (outcomes.includes('fenced') || signal.aborted) return 'fenced';
  const failed = outcomes.filter((outcome) => outcome !== 'stored' && outcome !== 'fenced');
  if (failed.length > 0 && !(await context.store.postponePending(lease, failed))) return 'fenced';
  const refused = tries.find((tried) => tried.status === 'rejected');
  if (refused !== undefined) throw refused.reason;
  return due.length === MAX_RUNS_PER_ROUND ? 'full' : 'done';
}

/** Loads and stores a result. It counts towards the memory budget until it is committed. */
async function retryRun(
  run: PendingRun,
  lease: LeaseGrant,
  limited: LimitedRun,
  context: FeedContext,
  signal: AbortSignal,
): Promise<'stored' | 'fenced' | PostponedTry> {
  const { store, loader, observer } = context;
  const { pendingRetryMs } = context.settings;
  const tried = await loader.loadOnce(run, signal);
  if (tried.kind === 'pending') return postponed(run, tried.reason, pendingRetryMs, tried.retryAfterMs);
  try {
    const outcome = await limited(async () => {
      signal.throwIfAborted(); // it may have waited for other commits
      return storeResult(store, lease, tried.entry);
    });
    if (outcome.kind === 'fenced') return 'fenced';
    observer.committed(outcome.counts, []);
    if (outcome.kind === 'still_pending') return postponed(run, outcome.reason, pendingRetryMs);
    observer.truncated('resolved', 1);
    return 'stored';
  } catch (error) {
    if (!isValueRefused(error)) throw error;
    return postponed(run, 'invalid_result', pendingRetryMs);
  } finally {
    tried.release();
  }
}

export function postponed(run: PendingRun, reason: PendingReason, firstMs: number, retryAfterMs = 0): PostponedTry {
  const { scanId, revision, attempts, pendingForMs } = run;
  const nextTryInMs = Math.max(retryAfterMs, pendingPause(attempts + 1, pendingForMs, firstMs));
  return { scanId, revision, reason, nextTryInMs };
}
