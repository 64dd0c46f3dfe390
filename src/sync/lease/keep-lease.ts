import type { FeedContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';
import { LOOKS_PER_TTL } from './take-lease.js';

/**
 * Renews the lease well before it expires and refreshes the figures read from the database. Resolves when the lease is lost
 * or the signal aborts. While the database is unreachable it keeps trying: if no other replica took the feed, the lease is
 * still valid, and if one did, the fence rejects the commits of this one.
 */
export async function keepLease(lease: LeaseGrant, context: FeedContext, signal: AbortSignal): Promise<void> {
  const { clock, observer, store, leaseTtlMs } = context;
  const paceMs = leaseTtlMs / LOOKS_PER_TTL;
  let failures = 0;
  const works = () => {
    if (failures > 0) observer.recovered('lease', failures);
    failures = 0;
  };
  while (!signal.aborted) {
    await clock.sleep(paceMs, signal);
    if (signal.aborted) return;
    try {
      const askedAt = clock.monotonic();
      if (!(await store.renewLease(lease, leaseTtlMs))) return works(); // lost, and not kept from us
      observer.leading(askedAt + leaseTtlMs);
      observer.status(await store.readStatus(lease.feed));
      works();
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      observer.failed('lease', error, failures, paceMs);
    }
  }
}
