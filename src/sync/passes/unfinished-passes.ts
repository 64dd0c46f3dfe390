import type { PassKind } from '../ports/index.js';

/** The kinds of passes that are unfinished, as the last renewal of the lease found, so that nobody asks the database for each kind. */
export interface UnfinishedPasses {
  found(kinds: readonly PassKind[]): void;
  /** Whether there may be a pass of this kind; until the first renewal there may. */
  mayHave(kind: PassKind): boolean;
}

export function createUnfinishedPasses(): UnfinishedPasses {
  let unfinished: readonly PassKind[] | null = null;
  return {
    found: (kinds) => {
      unfinished = kinds;
    },
    mayHave: (kind) => unfinished?.includes(kind) ?? true,
  };
}
