import type { PassKind } from '../ports/index.js';

/** How passes of a kind are read. */
export interface PassPolicy {
  /** Whether it holds as many pages at once as the feed, or only the one being committed. */
  readonly readsAhead: boolean;
  /** Pause after each page, milliseconds. */
  readonly pauseMs: number;
  /** Whether its pages are committed only while the feed has nothing to read. */
  readonly waitsForFeed: boolean;
  /** The kind that goes first: no new slice begins while such a pass is unfinished. */
  readonly yieldsTo: PassKind | null;
  /** Whether it ends at `until`. Otherwise it ends with the feed. */
  readonly endsAtUntil: boolean;
  /** Whether it counts the runs that it stores as skipped by the cursor. Later entries than `until` are left to the cursor. */
  readonly findsSkipped: boolean;
  /** How often the store is read for the next pass, milliseconds. */
  readonly checkEveryMs: number;
  /** Pause while its cursor leads nowhere, milliseconds; null: the poll interval. */
  readonly stuckPauseMs: number | null;
}

const RECONCILING = {
  readsAhead: false,
  waitsForFeed: false,
  yieldsTo: null,
  endsAtUntil: true,
  findsSkipped: true,
  checkEveryMs: 10_000,
  stuckPauseMs: 60_000,
} as const;

export const PASS_POLICIES: Readonly<Record<PassKind, PassPolicy>> = {
  recent: { ...RECONCILING, pauseMs: 0 },
  // Not urgent: the pauses leave the service and the database to other requests.
  full: { ...RECONCILING, pauseMs: 1_000 },
  history: {
    readsAhead: true,
    pauseMs: 0,
    waitsForFeed: true,
    yieldsTo: 'backfill',
    // `since` may have led the feed past entries that were delivered after its start.
    endsAtUntil: false,
    findsSkipped: false,
    checkEveryMs: 5_000,
    stuckPauseMs: null,
  },
  backfill: {
    readsAhead: true,
    pauseMs: 0,
    waitsForFeed: false,
    yieldsTo: null,
    endsAtUntil: true,
    findsSkipped: false,
    checkEveryMs: 5_000,
    stuckPauseMs: null,
  },
};

export const PASS_KINDS = Object.keys(PASS_POLICIES) as readonly PassKind[];
