import type { FeedContext } from './context.js';
import type { LeaseGrant } from './ports.js';

/** Notes in the database whether the feed's cursor leads on, so that an operator sees it: whenever that has changed. */
export interface StuckNote {
  /** After each page. Rejects with a `Trouble` of the store; the next page notes it then. */
  reached(stuck: boolean): Promise<void>;
}

export function createStuckNote(lease: LeaseGrant, { store, observer }: FeedContext): StuckNote {
  /** Null: what the process before has noted is not known. */
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
