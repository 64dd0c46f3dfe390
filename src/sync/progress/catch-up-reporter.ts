import type { FeedContext } from '../context.js';
import type { CommittedPage } from '../page/page.js';
import type { LeaseGrant } from '../ports/index.js';
import { createPaceMeter } from './reading-pace.js';

/** Minimum interval between two writes of the pace, milliseconds. */
const STORE_INTERVAL_MS = 10_000;

/** Reports how far the feed is from its end while it catches up. */
export function createCatchUpReporter(lease: LeaseGrant, { store, observer, clock }: FeedContext) {
  let meter = createPaceMeter();
  let entries = 0;
  let storedAt: number | null = null;
  return {
    /** Called after the commit of a page that is not the last. */
    pageCommitted: async ({ items, provenUpTo, polledAt, monotonicTimeOf }: CommittedPage): Promise<void> => {
      const now = clock.monotonic();
      entries += items;
      // The end of the feed is now, so the remaining time is the lag of the feed.
      const behindMs = provenUpTo === null ? null : polledAt - monotonicTimeOf(provenUpTo);
      const pace = meter.measure(now, items, behindMs);
      observer.reading('feed', { entries, deliveredUpTo: provenUpTo, pace });
      if (pace === null || (storedAt !== null && now - storedAt < STORE_INTERVAL_MS)) return;
      storedAt = now;
      await store.storePace(lease, pace);
    },
    /** Called when the feed has caught up or is stuck. */
    stop: async (): Promise<void> => {
      if (entries > 0) observer.reading('feed', null);
      const wasStored = storedAt !== null;
      meter = createPaceMeter();
      entries = 0;
      storedAt = null;
      if (wasStored) await store.storePace(lease, null);
    },
  };
}
