import type { LeaseRenewal, PassKind } from '../ports/index.js';

export type UnfinishedWork = ReturnType<typeof createUnfinishedWork>;

/** Keeps the unfinished passes and pending results of a feed as of the last lease renewal, so that tasks need not poll the database. */
export function createUnfinishedWork() {
  let last: LeaseRenewal | null = null;
  return {
    update: (renewal: LeaseRenewal): void => {
      last = renewal;
    },
    /** Returns whether there may be an unfinished pass of this kind; until the first renewal there may. */
    mayHavePass: (kind: PassKind): boolean => last?.unfinished.includes(kind) ?? true,
    /** Returns whether there may be pending results; until the first renewal there may. */
    mayHavePending: (): boolean => last === null || last.status.pendingResults > 0,
  };
}
