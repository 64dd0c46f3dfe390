import type { FeedContext } from './context.js';
import type { LeaseGrant } from './ports.js';
import type { FetchedPage } from './read-page.js';
import { createPaceMeter } from './reading-pace.js';

/** The pace is noted in the store this often at most. */
const NOTED_EVERY_MS = 10_000;

/** Tells how far the feed is from its end while it is read from behind. */
export interface FeedProgress {
  /** A page was committed, and more follows. */
  passed(page: FetchedPage): Promise<void>;
  /** The feed is no longer being read from behind its end. */
  over(): Promise<void>;
}

export function createFeedProgress(lease: LeaseGrant, { store, observer, clock }: FeedContext): FeedProgress {
  let meter = createPaceMeter();
  let entries = 0;
  let notedAt: number | null = null;
  return {
    passed: async ({ draft, provenUpTo, polledAt, instantOf }) => {
      const now = clock.monotonic();
      const items = draft.items;
      entries += items;
      // The end moves on with the time: what remains is what the feed is behind.
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
