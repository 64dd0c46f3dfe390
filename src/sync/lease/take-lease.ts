import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import type { FeedIdentity, FeedStatus, LeaseGrant } from '../ports/index.js';
import { pauseAfter } from '../retry/backoff.js';

/**
 * Time for which a feed may be free although processes try to take it, milliseconds. It counts from the end of a lease: for so long, a
 * free feed is left to processes that lead fewer feeds.
 */
const MAX_FREE_MS = 60_000;

/** No process can take a free feed: another session has locked its row for a long time. */
class FeedLocked extends Error implements Failure {
  override readonly name = 'FeedLocked';
  readonly kind = 'lock_timeout';
  readonly action = 'retry';
  constructor(feed: string, freeMs: number) {
    super(
      `no process has led the feed ${feed} for ${Math.floor(freeMs / 1000)} s: another session probably locks its row. Find it in pg_locks, and end it`,
    );
  }
}

/**
 * Waits until this process holds the lease; null when the signal aborts. Meanwhile it refreshes the figures of a standby.
 * @param starting whether the process has just started. Then the first attempt may replace a dead predecessor on the same host.
 */
export async function takeLease(
  context: FeedContext,
  signal: AbortSignal,
  starting: boolean,
): Promise<LeaseGrant | null> {
  const { clock, observer, leases } = context;
  const { identity, stepMs } = context.settings;
  let first = starting;
  let failures = 0;
  let attemptFailed = false;
  let freeSince: number | null = null;
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
      const { leaseHolder } = status;
      const replaced = leaseHolder !== null && leases.mayReplace(leaseHolder, first) ? leaseHolder : null;
      freeSince = leaseHolder === null ? (freeSince ?? check.askedAt) : null;
      // If the predecessor's last commit locks the feed, the next attempt may still replace the predecessor.
      first &&= replaced !== null;
      const isTried = mayTake(status, replaced, identity);
      const lease = isTried ? await attemptToTake(replaced, context, signal) : null;
      const freeMs = freeSince === null || lease !== null ? 0 : check.askedAt - freeSince;
      if (freeMs > leases.ttlMs + MAX_FREE_MS) throw new FeedLocked(identity.name, freeMs);
      // Not a recovery: the cause of the failed attempt may persist, for example if the feed belongs to another service.
      if (isTried && lease === null && attemptFailed) continue;
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

/** Takes the lease; null if that is not possible now. */
async function attemptToTake(
  replaced: string | null,
  { observer, leases, settings: { identity } }: FeedContext,
  signal: AbortSignal,
): Promise<LeaseGrant | null> {
  const taken = await leases.take(identity, replaced, signal);
  if (taken === null) return null;
  const { lease, askedAt } = taken;
  observer.leading(askedAt + leases.ttlMs);
  if (lease.filtersBefore !== null) observer.filtersChanged(lease.filtersBefore, identity.filters);
  return lease;
}

/**
 * Returns whether an attempt may succeed, or fails with an error that an operator needs to see: the feed belongs to another service.
 */
function mayTake({ leaseHolder, baseUrl }: FeedStatus, replaced: string | null, identity: FeedIdentity): boolean {
  return leaseHolder === null || leaseHolder === replaced || (baseUrl !== null && baseUrl !== identity.baseUrl);
}
