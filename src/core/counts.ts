/** The effect of a commit, as numbers of runs. */
export interface CommitCounts {
  readonly inserted: number;
  readonly updated: number;
  /** Updated runs whose revision was stored already and got missing values, perhaps the test mode that a lower one states. */
  readonly filled: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly quarantined: number;
  readonly conflicts: number;
  /** Scan ids of the entries whose revision this commit was the first to store; filled runs are not included. */
  readonly stored: readonly string[];
}

/** Maximum number of rows that are counted for one figure of the status of a feed, which is read every few seconds. */
export const MAX_COUNTED = 10_000;
