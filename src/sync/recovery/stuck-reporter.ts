import type { FeedContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';

/** Stores and reports changes of whether the feed is stuck. */
export interface StuckReporter {
  /** Called after each page. Rejects with a `Failure` of the store; the change is then stored after the next page. */
  report(stuck: boolean): Promise<void>;
}

export function createStuckReporter(lease: LeaseGrant, { store, observer }: FeedContext): StuckReporter {
  /** Null: the state that the previous process stored is not known. */
  let reported: boolean | null = null;
  return {
    report: async (stuck) => {
      if (stuck === reported) return;
      await store.storeStuck(lease, stuck);
      if (stuck || reported === true) observer.stuck(stuck);
      reported = stuck;
    },
  };
}
