/** What `/status.json` and the status page tell. Times are ISO 8601. No secrets, no cursor, no document content. */
export interface StatusReport {
  readonly feed: string;
  readonly version: string;
  readonly startedAt: string;
  /** `starting`: nothing is known of the feed yet. */
  readonly role: 'starting' | 'leader' | 'standby';
  readonly leaseHolder: string | null;
  readonly caughtUp: boolean;
  readonly backfillComplete: boolean;
  readonly dataCompleteAsOf: string | null;
  /** Null while unknown. */
  readonly lagSeconds: number | null;
  readonly lastPollAt: string | null;
  readonly lastCommitAt: string | null;
  /** Since when the service's cursor is missing, stands still or goes in circles; null: it leads on. */
  readonly stuckSince: string | null;
  /** Runs inserted or updated since this process started. */
  readonly runsWritten: number;
  /** The passes that this process is running, and the feed while it catches up. */
  readonly passes: readonly CurrentPass[];
  readonly pendingResults: number | null;
  readonly quarantinedEntries: number | null;
  /** What fails at the moment and is tried again. */
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

export interface CurrentError {
  /** What the process was doing. */
  readonly stage: string;
  readonly kind: string;
  /** One line. */
  readonly message: string;
  readonly since: string;
  /** Failures in a row. */
  readonly failures: number;
}
