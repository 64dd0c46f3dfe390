import { pauseAfter } from './backoff.js';
import type { FeedContext } from './context.js';
import { batchOf } from './page-draft.js';
import type { LeaseGrant, PendingReason, PendingRun } from './ports.js';
import { troubleOf } from './trouble.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Runs looked at in one go; the rest are due the next time. */
const RUNS_AT_ONCE = 50;

/**
 * The pause before a pending result is tried again (promise 3): doubles from the first one up to an hour, after seven days
 * once a day, without end. Pure.
 */
export function pendingPause(attempts: number, pendingForMs: number, firstMs: number): number {
  if (pendingForMs > 7 * DAY_MS) return DAY_MS;
  return Math.min(HOUR_MS, firstMs * 2 ** Math.min(attempts, 30));
}

/** Retries results that could not be loaded before their page was committed, until the lease is lost or the signal aborts. */
export async function retryPending(lease: LeaseGrant, context: FeedContext, signal: AbortSignal): Promise<void> {
  const { clock, observer, pendingRetryMs } = context;
  let failures = 0;
  while (!signal.aborted) {
    await clock.sleep(Math.min(pendingRetryMs, MINUTE_MS), signal);
    if (signal.aborted) return;
    try {
      if (!(await retryDue(lease, context, signal))) return;
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, troubleOf(error), clock.random());
      observer.failed('result', error, failures, pauseMs);
      await clock.sleep(pauseMs, signal);
    }
  }
}

/** False when the lease was lost. */
async function retryDue(lease: LeaseGrant, context: FeedContext, signal: AbortSignal): Promise<boolean> {
  const due = await context.store.duePending(lease.feed, RUNS_AT_ONCE);
  const held = await Promise.all(due.map((run) => retryRun(run, lease, context, signal)));
  return held.every(Boolean);
}

async function retryRun(
  run: PendingRun,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { store, loader, observer } = context;
  const verdict = await loader.loadOnce(run, signal);
  if (signal.aborted) return true;
  if (verdict.kind === 'pending') return postpone(run, verdict.reason, lease, context);
  try {
    const outcome = await store.commitResults(lease, batchOf([verdict.draft], null));
    if (outcome.kind === 'fenced') return false;
    observer.committed(outcome.counts, []);
    observer.truncated('resolved', 1);
    return true;
  } catch (error) {
    if (troubleOf(error).remedy !== 'data') throw error;
    return postpone(run, 'invalid_result', lease, context);
  }
}

async function postpone(
  run: PendingRun,
  reason: PendingReason,
  lease: LeaseGrant,
  { store, pendingRetryMs }: FeedContext,
): Promise<boolean> {
  const { scanId, revision } = run;
  const nextTryInMs = pendingPause(run.attempts + 1, run.pendingForMs, pendingRetryMs);
  return store.postponePending(lease, [{ scanId, revision, reason, nextTryInMs }]);
}
