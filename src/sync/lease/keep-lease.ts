import type { FeedContext } from '../context.js';
import type { UnfinishedPasses } from '../passes/unfinished-passes.js';
import type { LeaseGrant } from '../ports/index.js';
import { ATTEMPTS_PER_TTL } from './take-lease.js';

/** Maximum interval of renewals, milliseconds: a requested pass waits for one, and the lease may last an hour. */
const MAX_INTERVAL_MS = 10_000;

/**
 * Renews the lease well before it expires. The same statement reads the figures of the feed and which passes are unfinished.
 * Resolves when the lease is lost or the signal aborts. While the database is unreachable it keeps retrying: if no other
 * replica took the lease, it is still valid, and if one did, the fence rejects the commits of this process.
 */
export async function keepLease(
  lease: LeaseGrant,
  context: FeedContext,
  passes: UnfinishedPasses,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store, leaseTtlMs } = context;
  const intervalMs = Math.min(leaseTtlMs / ATTEMPTS_PER_TTL, MAX_INTERVAL_MS);
  let failures = 0;
  const succeeded = () => {
    if (failures > 0) observer.recovered('lease', failures);
    failures = 0;
  };
  while (!signal.aborted) {
    await clock.sleep(intervalMs, signal);
    if (signal.aborted) return;
    try {
      const askedAt = clock.monotonic();
      const renewal = await store.renewLease(lease, leaseTtlMs);
      if (renewal === null) return succeeded(); // lost, but the database answered
      observer.leading(askedAt + leaseTtlMs);
      observer.status(renewal.status);
      passes.found(renewal.unfinished);
      succeeded();
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      observer.failed('lease', error, failures, intervalMs);
    }
  }
}
