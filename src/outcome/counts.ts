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

/** What two commits did together. */
export function addCounts(a: CommitCounts, b: CommitCounts): CommitCounts {
  return {
    inserted: a.inserted + b.inserted,
    updated: a.updated + b.updated,
    filled: a.filled + b.filled,
    unchanged: a.unchanged + b.unchanged,
    stale: a.stale + b.stale,
    quarantined: a.quarantined + b.quarantined,
    conflicts: a.conflicts + b.conflicts,
    stored: [...a.stored, ...b.stored],
  };
}
