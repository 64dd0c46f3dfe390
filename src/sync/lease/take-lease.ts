import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import type { FeedContext, LeaderContext } from '../context.js';
import type { FeedIdentity, LeaseGrant, StoredFeed } from '../ports/index.js';
import { pauseAfter } from '../retry/backoff.js';

/**
 * Maximum time, after the time to live, for which a feed may stay free although processes try to take it, milliseconds. During the time to
 * live it is left to processes that lead fewer feeds.
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
 * Waits until this process leads the feed; null when the signal aborts. Meanwhile it refreshes the figures of a standby.
 * @param admit rejects if the feed does not belong in its schema; called before each attempt, since taking a feed creates it, and an
 *   operator may forget it between two
 */
export async function takeLease(
  context: LeaderContext,
  signal: AbortSignal,
  admit: (signal: AbortSignal) => Promise<void>,
): Promise<LeaseGrant | null> {
  const { clock, observer, leases, recovery } = context;
  const { identity, stepMs } = context.settings;
  let failures = 0;
  let pauseMs = 0;
  leases.readEarly();
  for (;;) {
    observer.ticked(pauseMs + stepMs);
    const read = await leases.nextRead(signal);
    if (read === null) return null;
    if ('error' in read) {
      failures += 1;
      pauseMs = read.pauseMs;
      observer.failed('lease', read.error, pauseMs);
      continue;
    }
    const feed = read.feeds.get(identity.name) as StoredFeed;
    const { status } = feed;
    observer.status(status);
    pauseMs = leases.intervalMs;
    try {
      if (!isWorthAnAttempt(feed, leases.process.holder, identity)) {
        observer.recovered('lease');
        failures = 0;
        continue;
      }
      await admit(signal);
      const lease = await attemptToTake(feed, context, signal);
      const freeMs = leases.process.share.freeForMs(identity.name, read.askedAt);
      if (lease === null && freeMs > leases.process.ttlMs + MAX_FREE_MS) throw new FeedLocked(identity.name, freeMs);
      if (lease === null) continue; // not a recovery: the cause of a failed attempt may persist
      observer.recovered('lease');
      return lease;
    } catch (error) {
      if (signal.aborted) return null;
      failures += 1;
      const failurePauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.failed('lease', error, failurePauseMs);
      observer.ticked(failurePauseMs);
      await recovery.pauseAfterFailure(error, failurePauseMs, signal);
    }
  }
}

/** Takes the feed; null if that is not possible now. */
async function attemptToTake(
  { holder }: StoredFeed,
  { observer, leases, settings: { identity } }: FeedContext,
  signal: AbortSignal,
): Promise<LeaseGrant | null> {
  const lease = await leases.take(identity, holder, signal);
  if (lease === null) return null;
  observer.leading(leases.process.aliveUntil);
  if (lease.filtersBefore !== null) observer.filtersChanged(lease.filtersBefore, identity.filters);
  return lease;
}

/**
 * Returns whether an attempt may succeed, or fails with an error that an operator needs to see: the feed belongs to another service.
 * A feed may already name this process: the response to an attempt was lost, or a command has raised the epoch.
 */
function isWorthAnAttempt(
  { status: { leaseHolder, baseUrl }, holder }: StoredFeed,
  own: string,
  identity: FeedIdentity,
): boolean {
  return leaseHolder === null || holder === own || (baseUrl !== null && baseUrl !== identity.baseUrl);
}
