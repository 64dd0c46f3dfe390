import type { PassKind } from '../ports/index.js';

/** Rules for passes of a kind. */
export interface PassPolicy {
  /**
   * Whether the runs that it stores count as skipped by the cursor, to which entries after `until` are left. It is not urgent, so it
   * does not read ahead.
   */
  readonly findsSkipped: boolean;
  /** Whether it ends at `until`. Otherwise it ends with the feed. */
  readonly endsAtUntil: boolean;
  /** Pause after each page, milliseconds. */
  readonly pauseMs: number;
  /** Whether its pages are committed only while the feed is idle. */
  readonly waitsForFeed: boolean;
  /** The kind that takes precedence: no new slice begins while such a pass is unfinished. */
  readonly yieldsTo: PassKind | null;
}

const UNTIL: PassPolicy = { findsSkipped: false, endsAtUntil: true, pauseMs: 0, waitsForFeed: false, yieldsTo: null };

export const PASS_POLICIES: Readonly<Record<PassKind, PassPolicy>> = {
  recent: { ...UNTIL, findsSkipped: true },
  // The pauses leave capacity of the service and the database for other requests.
  full: { ...UNTIL, findsSkipped: true, pauseMs: 1_000 },
  // It does not end at `until`: the feed may have skipped entries that were delivered after its start, because of `since`.
  history: { ...UNTIL, endsAtUntil: false, waitsForFeed: true, yieldsTo: 'backfill' },
  backfill: UNTIL,
};

export const PASS_KINDS = Object.keys(PASS_POLICIES) as readonly PassKind[];
