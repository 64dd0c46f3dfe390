import type { LeaseRenewal, PassKind } from '../ports/index.js';

/** What is left to do for a feed, as the last renewal of its lease found, so that no task asks the database regularly. */
export interface UnfinishedWork {
  found(renewal: LeaseRenewal): void;
  /** Whether there may be an unfinished pass of this kind; until the first renewal there may. */
  mayHavePass(kind: PassKind): boolean;
  /** Whether there may be pending results; until the first renewal there may. */
  mayHavePending(): boolean;
}

export function createUnfinishedWork(): UnfinishedWork {
  let last: LeaseRenewal | null = null;
  return {
    found: (renewal) => {
      last = renewal;
    },
    mayHavePass: (kind) => last?.unfinished.includes(kind) ?? true,
    mayHavePending: () => last === null || last.status.pendingResults > 0,
  };
}
