import type { PassKind } from '../ports/index.js';

/** Rules for passes of a kind. */
export interface PassPolicy {
  /** Whether it prefetches pages like the feed. Otherwise it has one page in memory at a time. */
  readonly readsAhead: boolean;
  /** Pause after each page, milliseconds. */
  readonly pauseMs: number;
  /** Whether its pages are committed only while the feed is idle. */
  readonly waitsForFeed: boolean;
  /** The kind that takes precedence: no new slice begins while such a pass is unfinished. */
  readonly yieldsTo: PassKind | null;
  /** Whether it ends at `until`. Otherwise it ends with the feed. */
  readonly endsAtUntil: boolean;
  /** Whether the runs that it stores count as skipped by the cursor. Entries after `until` are left to the cursor. */
  readonly findsSkipped: boolean;
  /** Pause while its cursor is stuck, milliseconds; null: the poll interval. */
  readonly stuckPauseMs: number | null;
}

const RECONCILING = {
  readsAhead: false,
  waitsForFeed: false,
  yieldsTo: null,
  endsAtUntil: true,
  findsSkipped: true,
  stuckPauseMs: 60_000,
} as const;

export const PASS_POLICIES: Readonly<Record<PassKind, PassPolicy>> = {
  recent: { ...RECONCILING, pauseMs: 0 },
  // Not urgent: the pauses leave capacity of the service and the database for other requests.
  full: { ...RECONCILING, pauseMs: 1_000 },
  history: {
    readsAhead: true,
    pauseMs: 0,
    waitsForFeed: true,
    yieldsTo: 'backfill',
    // The feed may have skipped entries that were delivered after its start, because of `since`.
    endsAtUntil: false,
    findsSkipped: false,
    stuckPauseMs: null,
  },
  backfill: {
    readsAhead: true,
    pauseMs: 0,
    waitsForFeed: false,
    yieldsTo: null,
    endsAtUntil: true,
    findsSkipped: false,
    stuckPauseMs: null,
  },
};

export const PASS_KINDS = Object.keys(PASS_POLICIES) as readonly PassKind[];
