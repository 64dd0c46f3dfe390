import { classifyError } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import type { FeedStatus, LeaseGrant } from '../ports/index.js';
import { pauseAfter } from '../retry/backoff.js';

/**
 * Waits until this process holds the lease; null when the signal aborts. Meanwhile it refreshes the figures of a standby.
 * @param starting whether the process has just started. Then the first attempt may replace a dead predecessor on the same
 * host. Later ones may not: two containers of a pod, each with its own process ids, would take the lease from each other
 * again and again.
 */
export async function takeLease(
  context: FeedContext,
  signal: AbortSignal,
  starting: boolean,
): Promise<LeaseGrant | null> {
  const { clock, observer, leases, identity, stepMs } = context;
  let first = starting;
  let failures = 0;
  let attemptFailed = false;
  let pauseMs = 0;
  for (;;) {
    observer.ticked(pauseMs + stepMs);
    const check = await leases.checkStatus(identity.name, signal, pauseMs === 0);
    if (check === null) return null;
    if ('error' in check) {
      failures += 1;
      pauseMs = check.pauseMs;
      observer.failed('lease', check.error, pauseMs);
      continue;
    }
    const status = check.answer;
    observer.status(status);
    pauseMs = leases.intervalMs;
    try {
      const { lease, isDeferred, replaced } = await attemptToTake(status, first, context, signal);
      // If the predecessor's last commit locks the feed, the next attempt may still replace the predecessor.
      first &&= isDeferred && replaced !== null;
      // Not a recovery: the cause of the failed attempt may persist, for example if the feed belongs to another service.
      if (isDeferred && attemptFailed) continue;
      // Reported even without failures here: it may be the first success since renewals failed.
      observer.recovered('lease');
      failures = 0;
      attemptFailed = false;
      if (lease !== null) return lease;
    } catch (error) {
      if (signal.aborted) return null;
      failures += 1;
      attemptFailed = true;
      const failurePauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.failed('lease', error, failurePauseMs);
      observer.ticked(failurePauseMs);
      await clock.sleep(failurePauseMs, signal);
    }
  }
}

/** Takes the lease if an attempt can succeed. `isDeferred`: not possible now, retried next round. `replaced`: old holder. */
async function attemptToTake(status: FeedStatus, first: boolean, context: FeedContext, signal: AbortSignal) {
  const { observer, leases, identity, leaseTtlMs } = context;
  const replaced = mayReplace(status.leaseHolder, first, context) ? status.leaseHolder : null;
  if (!mayTake(status, replaced, context)) return { lease: null, isDeferred: false, replaced };
  const taken = await leases.take(identity, replaced, signal);
  if (taken === null) return { lease: null, isDeferred: true, replaced };
  const { lease, askedAt } = taken;
  if (lease !== null) {
    observer.leading(askedAt + leaseTtlMs);
    if (lease.filtersBefore !== null) observer.filtersChanged(lease.filtersBefore, identity.filters);
  }
  return { lease, isDeferred: false, replaced };
}

/**
 * Returns whether the lease is this process's own, perhaps from an attempt whose answer was lost, or that of a dead predecessor.
 */
function mayReplace(leaseHolder: string | null, first: boolean, { holder, isDead }: FeedContext): boolean {
  return leaseHolder !== null && (leaseHolder === holder || (first && isDead(leaseHolder)));
}

/**
 * Returns whether an attempt may succeed, or fails with an error that an operator needs to see: the feed belongs to another service.
 */
function mayTake({ leaseHolder, baseUrl }: FeedStatus, replaced: string | null, { identity }: FeedContext): boolean {
  return leaseHolder === null || leaseHolder === replaced || (baseUrl !== null && baseUrl !== identity.baseUrl);
}
