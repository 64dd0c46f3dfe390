import type { FeedContext } from '../context.js';
import type { LeaseGrant } from '../ports/index.js';

/** Number of pages, with no end between them, that the service refuses to list without filters, after which this is reported. */
const REFUSED_PAGES = 10;

/** Reports that the service never shows whether a page was the last: its cursors belong to their filters, and move or are missing. */
export function createHiddenEndReporter({ observer }: FeedContext) {
  let refused = 0;
  return {
    /** Called after each page. */
    report: ({ isEnd, isRefused }: { readonly isEnd: boolean; readonly isRefused: boolean }): void => {
      refused = isEnd ? 0 : refused + (isRefused ? 1 : 0);
      if (isRefused && refused === REFUSED_PAGES) observer.endHidden();
    },
  };
}

/** Stores and reports changes of whether the feed is stuck. */
export function createStuckReporter(lease: LeaseGrant, { store, observer }: FeedContext) {
  /** Null: the state that the previous process stored is not known. */
  let reported: boolean | null = null;
  return {
    /** Called after each page. Rejects with a `Failure` of the store; the change is then stored after the next page. */
    report: async (stuck: boolean): Promise<void> => {
      if (stuck === reported) return;
      await store.storeStuck(lease, stuck);
      if (stuck || reported === true) observer.stuck(stuck);
      reported = stuck;
    },
  };
}
