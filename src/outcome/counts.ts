import type { CommitCounts } from '../sync/ports.js';

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
