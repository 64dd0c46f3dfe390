/** What a commit did, in runs. */
export interface CommitCounts {
  readonly inserted: number;
  readonly updated: number;
  /** Of those updated: the revision was stored already, and got what it lacked. */
  readonly filled: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly quarantined: number;
  readonly conflicts: number;
  /** By scan id, the entries whose revision this commit was the first to store: not those that were filled. */
  readonly stored: readonly string[];
}

/** What a commit did that wrote nothing. */
export const NO_COUNTS: CommitCounts = {
  inserted: 0,
  updated: 0,
  filled: 0,
  unchanged: 0,
  stale: 0,
  quarantined: 0,
  conflicts: 0,
  stored: [],
};
