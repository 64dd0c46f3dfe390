import type { FeedContext } from '../context.js';
import type { FetchedPage } from '../page/read-page.js';
import { createPaceMeter } from '../passes/reading-pace.js';
import type { LeaseGrant } from '../ports/index.js';

/** Minimum interval between two writes of the pace, milliseconds. */
const NOTED_EVERY_MS = 10_000;

/** Reports how far the feed is from its end while it catches up. */
export interface FeedProgress {
  /** A page was committed, and more follows. */
  passed(page: FetchedPage): Promise<void>;
  /** The feed has caught up, or is stuck. */
  over(): Promise<void>;
}

export function createFeedProgress(lease: LeaseGrant, { store, observer, clock }: FeedContext): FeedProgress {
  let meter = createPaceMeter();
  let entries = 0;
  let notedAt: number | null = null;
  return {
    passed: async ({ items, provenUpTo, polledAt, instantOf }) => {
      const now = clock.monotonic();
      entries += items;
      // The end moves with the time, so the remaining time is the lag of the feed.
      const behindMs = provenUpTo === null ? null : polledAt - instantOf(provenUpTo);
      const pace = meter.passed(now, items, behindMs);
      observer.reading('feed', { entries, deliveredUpTo: provenUpTo, pace });
      if (pace === null || (notedAt !== null && now - notedAt < NOTED_EVERY_MS)) return;
      notedAt = now;
      await store.notePace(lease, pace);
    },
    over: async () => {
      if (entries > 0) observer.reading('feed', null);
      const noted = notedAt !== null;
      meter = createPaceMeter();
      entries = 0;
      notedAt = null;
      if (noted) await store.notePace(lease, null);
    },
  };
}
