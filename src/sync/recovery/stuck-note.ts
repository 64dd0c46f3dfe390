import type { FeedContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';

/** Stores whether the feed's cursor leads nowhere, for the operators, whenever that changes. */
export interface StuckNote {
  /** Called after each page. Rejects with a `Failure` of the store; the change is then stored after the next page. */
  reached(stuck: boolean): Promise<void>;
}

export function createStuckNote(lease: LeaseGrant, { store, observer }: FeedContext): StuckNote {
  /** Null: it is not known what the last process stored. */
  let noted: boolean | null = null;
  return {
    reached: async (stuck) => {
      if (stuck === noted) return;
      await store.noteStuck(lease, stuck);
      if (stuck || noted === true) observer.stuck(stuck);
      noted = stuck;
    },
  };
}
