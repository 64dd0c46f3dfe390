import { classifyError } from '../../core/errors.js';
import type { FeedContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';
import { filterChange } from '../recovery/filter-change.js';
import { pauseAfter } from '../retry/backoff.js';

/** Number of attempts to renew the lease within its time to live. A holder may miss two of them. */
export const ATTEMPTS_PER_TTL = 3;

/**
 * Waits until this process holds the lease; null when the signal aborts. Meanwhile it refreshes the figures of a standby.
 * @param starting whether the process has just started. Then the first attempt may replace a dead predecessor on the same
 * host. Later ones may not: two containers of a pod, each with its own process ids, would take the lease from each other
 * again and again.
 */
export async function takeLease(
  context: FeedContext,
  signal: AbortSignal,
  starting = false,
): Promise<LeaseGrant | null> {
  const { clock, observer, store, identity, holder, isDead, leaseTtlMs, stepMs } = context;
  let first = starting;
  let failures = 0;
  while (!signal.aborted) {
    observer.ticked(stepMs);
    try {
      await context.ready(signal);
      const status = await store.readStatus(identity.name);
      observer.status(status);
      const askedAt = clock.monotonic();
      const replaced = first && status.leaseHolder !== null && isDead(status.leaseHolder) ? status.leaseHolder : null;
      const lease = await store.acquireLease(identity, holder, leaseTtlMs, replaced);
      first = false;
      if (lease !== null) observer.leading(askedAt + leaseTtlMs);
      const before = lease?.filtersBefore ?? null;
      if (before !== null) observer.filtersChanged(filterChange(before, identity.filters));
      // Also reported without failures here: it may be the first success since failures while the lease was held.
      observer.recovered('lease', failures);
      failures = 0;
      if (lease !== null) return lease;
      const pauseMs = leaseTtlMs / ATTEMPTS_PER_TTL;
      observer.ticked(pauseMs);
      await clock.sleep(pauseMs, signal);
    } catch (error) {
      if (signal.aborted) return null;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.failed('lease', error, failures, pauseMs);
      observer.ticked(pauseMs);
      await clock.sleep(pauseMs, signal);
    }
  }
  return null;
}
