import { keepLease } from './keep-lease.js';
import { type LoopContext, syncPages } from './loop.js';
import { retryPending } from './retry-pending.js';
import { takeLease } from './take-lease.js';

/**
 * Follows a feed until the signal aborts: stands by while another process holds it; once it is ours, keeps it, reads its
 * pages and retries pending results, until it is lost. Never rejects: outages are waited out.
 */
export async function followFeed(context: LoopContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const lease = await takeLease(context, signal);
    if (lease === null) return;
    const lost = new AbortController();
    const held = AbortSignal.any([signal, lost.signal]);
    try {
      await Promise.all([
        keepLease(lease, context, held).finally(() => lost.abort()),
        syncPages(lease, context, held).finally(() => lost.abort()),
        retryPending(lease, context, held).finally(() => lost.abort()),
      ]);
    } finally {
      lost.abort();
      await giveBack(context, lease);
    }
  }
}

/** Best effort: a lease that cannot be given back expires. */
async function giveBack({ store, observer }: LoopContext, lease: Parameters<typeof store.releaseLease>[0]) {
  observer.leading(null);
  observer.caughtUp(null);
  await store.releaseLease(lease).catch(() => {});
}
