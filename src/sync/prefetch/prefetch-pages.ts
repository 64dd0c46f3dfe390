import type { FeedContext } from '../context.js';
import type { MemoryTicket, Priority } from '../memory/memory-budget.js';
import { checkPage } from '../page/check-page.js';
import { type DeadEnd, pageLimitAt } from '../page/end-of-feed.js';
import { type CheckedPage, leadsFurther, type ReceivedPage } from '../page/page.js';
import { receivePageWithin } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { linkedSignal } from '../waiting/linked-signal.js';
import { countJoined, joinPages } from './join-pages.js';

export interface PrefetchOptions {
  /** The priority of the memory of its pages. */
  readonly priority: Priority;
  /** Maximum number of pages that are joined for one commit. */
  readonly maxJoined: number;
  /** Maximum number of pages in memory, including those that are not released yet. */
  readonly maxHeld: number;
  /** The dead end that the previous page found. */
  readonly deadEnd: DeadEnd | null;
}

export type PrefetchedPages = ReturnType<typeof prefetchPages>;

interface HeldPage {
  readonly ticket: MemoryTicket;
  readonly page: Promise<CheckedPage>;
  /** The page, once it is complete. */
  complete: CheckedPage | null;
}

/**
 * Reads pages from a position on, within the memory budget. While one is committed, the next ones are requested and their truncated
 * results loaded.
 */
export function prefetchPages(
  start: Position,
  { priority, maxJoined, maxHeld, deadEnd }: PrefetchOptions,
  context: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit' | 'budget' | 'loader'>,
  signal: AbortSignal,
) {
  const { budget, loader, clock, pageLimit } = context;
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  /** The pages that were returned and not released yet, with those that were joined in one array. */
  const returned: HeldPage[][] = [];
  const changes = createNotifier();
  let finished = false;

  const hold = (ticket: MemoryTicket, page: Promise<CheckedPage>) => {
    const entry: HeldPage = { ticket, page, complete: null };
    page.then(
      (complete) => {
        entry.complete = complete;
      },
      () => {}, // thrown by next()
    );
    held.push(entry);
    changes.notify();
  };
  const check = async (received: ReceivedPage): Promise<CheckedPage> => {
    // So that the next page is requested first. Needs a timer: on a used connection the client writes a request only in the next
    // iteration of the event loop.
    if (leadsFurther(received)) await clock.sleep(0, until);
    return checkPage(received);
  };
  const loadResults = async (page: CheckedPage, ticket: MemoryTicket): Promise<CheckedPage> => {
    const entries = await loader.loadResults(page.entries, ticket, until);
    const loadedAt = clock.monotonic();
    return { ...page, entries, polls: page.polls.map((poll) => ({ ...poll, loadedAt })) };
  };
  /**
   * Requests the page at a position. Returns the next position once it is known; null if there is none. A function of its own,
   * because a page in a variable of the loop would stay in memory while the loop waits. For the same reason only promises are kept
   * here: the parsed entries of a page are released once they are checked.
   */
  const request = async (at: Position): Promise<Position | null> => {
    const ticket = budget.enqueue(priority);
    const limited = { ...context, pageLimit: pageLimitAt(at, deadEnd, pageLimit) };
    const received = receivePageWithin(ticket, limited, at, until);
    const checked = received.then(check);
    hold(
      ticket,
      checked.then((page) => loadResults(page, ticket)),
    );
    return received.then((page) => (leadsFurther(page) ? { ...at, cursor: page.next } : null));
  };
  const requestAll = async () => {
    for (let at: Position | null = start; at !== null && !until.aborted; ) {
      at = await request(at);
      while (!until.aborted && held.length + returned.flat().length >= maxHeld) await changes.wait();
    }
  };
  void requestAll()
    .catch(() => {}) // thrown by next()
    .finally(() => {
      finished = true;
      changes.notify();
    });

  const closeAll = (pages: readonly HeldPage[]) => {
    for (const { ticket } of pages) ticket.close();
    changes.notify();
  };
  /** Cancels all requests and releases the memory of pages that were not returned. The others may still be in use. */
  const stop = (): void => {
    linked.abort();
    linked.unlink();
    closeAll(held);
  };
  const unlessStopped = (error: unknown) => {
    if (until.aborted) return null;
    throw error;
  };
  return {
    /**
     * Returns the next page in order once it is complete, joined with any complete pages that follow it: there are some if the
     * store is slower than the service. Returns null after the last page, or once reading was stopped. Rejects with the
     * failure of a page; no page follows it.
     */
    next: async (): Promise<CheckedPage | null> => {
      while (held.length === 0 && !finished) await changes.wait();
      const [first] = held;
      if (first === undefined || until.aborted) return null;
      const page = await first.page.catch(unlessStopped);
      if (page === null || until.aborted) return null;
      const following = completeAfterFirst(held);
      const joined = countJoined([page, ...following], maxJoined);
      returned.push(held.splice(0, joined));
      return joinPages(page, following.slice(0, joined - 1));
    },
    /** Releases the memory of the first returned page that is not released yet. */
    release: () => closeAll(returned.shift() ?? []),
    stop,
    /** Stops, and releases all memory. */
    close: (): void => {
      stop();
      closeAll(returned.flat());
    },
  };
}

/** Returns the complete pages after the first, up to the first incomplete one. */
function completeAfterFirst(held: readonly HeldPage[]): CheckedPage[] {
  const pages = held.slice(1).map((entry) => entry.complete);
  const end = pages.indexOf(null);
  return pages.slice(0, end === -1 ? pages.length : end).filter((page) => page !== null);
}

/** Creates a notifier: `wait` resolves at the next `notify`. */
function createNotifier() {
  let wake = () => {};
  let waiting = new Promise<void>((resolve) => {
    wake = resolve;
  });
  return {
    wait: () => waiting,
    notify: () => {
      wake();
      waiting = new Promise<void>((resolve) => {
        wake = resolve;
      });
    },
  };
}
