import type { CommitCounts } from '../../src/core/counts.js';

/** The effect of a commit that wrote nothing. */
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
