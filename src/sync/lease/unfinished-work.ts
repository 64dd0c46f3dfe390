import type { PassKind, StoredFeed } from '../ports/index.js';

export type UnfinishedWork = ReturnType<typeof createUnfinishedWork>;

/** Keeps the unfinished passes and pending results of a feed as it was last read, so that tasks need not poll the database. */
export function createUnfinishedWork() {
  let last: StoredFeed | null = null;
  return {
    update: (read: StoredFeed): void => {
      last = read;
    },
    /** Returns whether there may be an unfinished pass of this kind; until the first read there may. */
    mayHavePass: (kind: PassKind): boolean => last?.unfinished.includes(kind) ?? true,
    /** Returns whether there may be pending results; until the first read there may. */
    mayHavePending: (): boolean => last === null || last.status.pendingResults > 0,
  };
}
