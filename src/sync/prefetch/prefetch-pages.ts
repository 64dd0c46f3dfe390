import { EventEmitter, once } from 'node:events';
import type { LeaderContext } from '../context.js';
import type { MemoryTicket, Priority } from '../memory/memory-budget.js';
import { checkPage } from '../page/check-page.js';
import { findEnding, firstLimitAt, IS_LAST } from '../page/end-of-feed.js';
import { joinPages, pagesToJoin } from '../page/join-pages.js';
import { type CheckedPage, leadsFurther, type PossibleEnd, type ReceivedPage } from '../page/page.js';
import { receivePageWithin } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { linkedSignal } from '../waiting/linked-signal.js';
import type { PageSource } from '../writer/write-pages.js';

export interface PrefetchOptions {
  /** The priority of the memory of its pages. */
  readonly priority: Priority;
  /** Maximum number of pages in memory, including those that are not released yet. */
  readonly maxHeld: number;
  /** Maximum number of pages that are committed together. */
  readonly maxJoined: number;
  /** Returns whether a page is known to be the last, whatever follows it. */
  isLast?(page: CheckedPage): boolean;
}

interface HeldPage {
  readonly ticket: MemoryTicket;
  readonly page: Promise<CheckedPage>;
  /** The page, once it is complete. */
  complete: CheckedPage | null;
}

/**
 * Reads pages from a position on, within the memory budget. While one is committed, the next ones are requested and their truncated
 * results loaded.
 * @param possibleEnd what the page before the first one found
 */
export function prefetchPages(
  start: Position,
  possibleEnd: PossibleEnd | null,
  options: PrefetchOptions,
  context: LeaderContext,
  signal: AbortSignal,
): PageSource & { close(): void } {
  const { priority, maxHeld, maxJoined } = options;
  const { budget, loader, clock, service, read } = context;
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  /** The tickets of the pages that are not released yet. */
  const open = new Set<MemoryTicket>();
  const changes = new EventEmitter();
  let finished = false;

  const release = (ticket: MemoryTicket) => {
    ticket.close();
    open.delete(ticket);
    changes.emit('change');
  };
  const check = async (received: ReceivedPage, ticket: MemoryTicket): Promise<CheckedPage> => {
    // So that the next page is requested first. Needs a timer: on a used connection the client writes a request only in the next
    // iteration of the event loop.
    if (leadsFurther(received)) await clock.sleep(0, until);
    return checkPage(received, () => release(ticket));
  };
  /** Loads the results of a page, and finds out whether it may be the end. */
  const completePage = async (checked: CheckedPage, ticket: MemoryTicket, previous: PossibleEnd | null) => {
    const entries = await loader.loadResults(checked.entries, ticket, until);
    const loadedAt = clock.monotonic();
    const page = { ...checked, entries, polls: checked.polls.map((poll) => ({ ...poll, loadedAt })) };
    if (options.isLast?.(page)) return { ...page, ending: IS_LAST };
    if (leadsFurther(page)) return page;
    return { ...page, ending: await findEnding(page, previous, read.filters, service, until) };
  };
  /**
   * Requests the page at a position. Returns the next position once it is known; null if there is none. A function of its own,
   * because a page in a variable of the loop would stay in memory while the loop waits. For the same reason only promises are kept
   * here: the parsed entries of a page are released once they are checked.
   */
  const request = async (at: Position, previous: PossibleEnd | null): Promise<Position | null> => {
    const ticket = budget.enqueue(priority);
    open.add(ticket);
    const received = receivePageWithin(ticket, at, read, context, until, firstLimitAt(at, previous));
    const checked = received.then((page) => check(page, ticket));
    const entry: HeldPage = {
      ticket,
      page: checked.then((page) => completePage(page, ticket, previous)),
      complete: null,
    };
    entry.page.then(
      (page) => {
        entry.complete = page;
      },
      () => {}, // thrown by take()
    );
    held.push(entry);
    changes.emit('change');
    return received.then((page) => (leadsFurther(page) ? { ...at, cursor: page.next } : null));
  };
  const requestAll = async () => {
    for (let at: Position | null = start; at !== null && !until.aborted; ) {
      at = await request(at, at === start ? possibleEnd : null);
      while (!until.aborted && open.size >= maxHeld) await once(changes, 'change');
    }
  };
  void requestAll()
    .catch(() => {}) // thrown by take()
    .finally(() => {
      finished = true;
      changes.emit('change');
    });

  /** Cancels all requests and releases the memory of pages that were not given out. Pages that were given out may still be in use. */
  const stop = (): void => {
    linked.abort();
    linked.unlink();
    for (const { ticket } of held) release(ticket);
  };
  return {
    isStopped: () => until.aborted,
    /**
     * Waits until the next page in order is complete, and joins the pages that follow it if they are complete too, as when the store is
     * slower than the service. Rejects with the failure of a page; no page follows it.
     */
    take: async () => {
      while (held.length === 0 && !finished) await once(changes, 'change');
      const [first] = held;
      if (first === undefined || until.aborted) return null;
      const page = await first.page.catch((error) => {
        if (!until.aborted) throw error;
        return null;
      });
      if (page === null || until.aborted) return null;
      const following = held.slice(1).map(({ complete }) => complete);
      const joined = pagesToJoin(page, following, maxJoined);
      held.splice(0, joined.length);
      return joinPages(joined);
    },
    stop,
    /** Stops, and releases all memory. */
    close: (): void => {
      stop();
      for (const ticket of open) release(ticket);
    },
  };
}
