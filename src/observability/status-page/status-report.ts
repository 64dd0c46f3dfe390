import type { CurrentError } from '../../core/errors.js';

/** Content of `/status.json` and of the status page. Times are ISO 8601. No secrets, no cursor, no document content. */
export interface StatusReport {
  readonly feed: string;
  readonly version: string;
  readonly startedAt: string;
  /** `starting`: the state of the feed is not known yet. */
  readonly role: 'starting' | 'leader' | 'standby';
  readonly leaseHolder: string | null;
  readonly caughtUp: boolean;
  readonly initialSyncComplete: boolean;
  readonly dataCompleteAsOf: string | null;
  /** Null while unknown. */
  readonly lagSeconds: number | null;
  readonly lastPollAt: string | null;
  readonly lastCommitAt: string | null;
  /** The latest delivery time up to which the feed was read, service clock. */
  readonly lastDeliveredAt: string | null;
  /** Time since which the service's cursor is missing, does not move or repeats; null if it advances. */
  readonly stuckSince: string | null;
  /** Time until which an operator accepts that most entries are unusable; null: the feed holds if they are. */
  readonly acceptsBadUntil: string | null;
  /** Runs inserted or updated since this process started. */
  readonly runsWritten: number;
  /** The passes that this process is running, and the feed while it catches up. */
  readonly passes: readonly CurrentPass[];
  /** This and the next two are counted up to 10,000. */
  readonly pendingResults: number | null;
  readonly quarantinedEntries: number | null;
  /** Completed runs whose data is missing, null or not an object. */
  readonly runsWithoutData: number | null;
  /** Current failures, which are being retried. */
  readonly currentErrors: readonly CurrentError[];
}

export interface CurrentPass {
  /** `feed`, or the kind of the pass: `recent`, `full`, `history`, `backfill`. */
  readonly pass: string;
  readonly entries: number;
  /** Delivery time, service clock. */
  readonly deliveredUpTo: string | null;
  /** Null while unknown. */
  readonly entriesPerSecond: number | null;
  readonly secondsLeft: number | null;
}
