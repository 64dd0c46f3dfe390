import type { LeaseRenewal, PassKind } from '../ports/index.js';

/** Unfinished passes and pending results of a feed as of the last lease renewal, so that tasks need not poll the database. */
export interface UnfinishedWork {
  update(renewal: LeaseRenewal): void;
  /** Whether there may be an unfinished pass of this kind; until the first renewal there may. */
  mayHavePass(kind: PassKind): boolean;
  /** Whether there may be pending results; until the first renewal there may. */
  mayHavePending(): boolean;
}

export function createUnfinishedWork(): UnfinishedWork {
  let last: LeaseRenewal | null = null;
  return {
    update: (renewal) => {
      last = renewal;
    },
    mayHavePass: (kind) => last?.unfinished.includes(kind) ?? true,
    mayHavePending: () => last === null || last.status.pendingResults > 0,
  };
}
