import type { MemoryTicket } from '../memory/memory-budget.js';
import type { CheckedEntry, CheckedPage } from '../page/check-page.js';
import { leadsFurther, type ReceivedPage } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { linkedSignal } from '../waiting/linked-signal.js';
import type { CompletedPage } from './completed-page.js';
import { countJoined, joinPages } from './join-pages.js';

export interface ReadAheadOptions {
  readonly read: (ticket: MemoryTicket, at: Position, signal: AbortSignal) => Promise<ReceivedPage>;
  /** Resolves once pending requests are sent, so that the next page is requested before this one is checked. */
  readonly afterNextRequest: (signal: AbortSignal) => Promise<void>;
  readonly complete: (page: CheckedPage, ticket: MemoryTicket, signal: AbortSignal) => Promise<readonly CheckedEntry[]>;
  /** Maximum number of pages in memory, including those that are not released yet. */
  readonly maxPages: number;
  /** Maximum number of pages that are joined for one commit. */
  readonly maxJoined: number;
  /** Takes the ticket of the next page and its results. */
  readonly enqueue: () => MemoryTicket;
  readonly monotonic: () => number;
}

export type ReadAhead = ReturnType<typeof readAhead>;

interface HeldPage {
  readonly ticket: MemoryTicket;
  readonly page: Promise<CompletedPage>;
  /** The page, once it is complete. */
  complete: CompletedPage | null;
}

/** Reads pages from a position on. While one is committed, the next ones are requested and their results loaded. */
export function readAhead(start: Position, options: ReadAheadOptions, signal: AbortSignal) {
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  /** The pages that were returned and not released yet, with those that were joined in one array. */
  const returned: HeldPage[][] = [];
  const changes = createNotifier();
  let finished = false;

  const add = (ticket: MemoryTicket, page: Promise<CompletedPage>) => {
    const entry: HeldPage = { ticket, page, complete: null };
    page.then(
      (completed) => {
        entry.complete = completed;
      },
      () => {}, // thrown by next()
    );
    held.push(entry);
    changes.notify();
  };
  const readAll = async () => {
    for (let at: Position | null = start; at !== null && !until.aborted; ) {
      const ticket = options.enqueue();
      const reading = options.read(ticket, at, until);
      add(ticket, complete(reading, ticket, options, until));
      const received: ReceivedPage = await reading;
      at = leadsFurther(received) ? { ...received.at, cursor: received.next } : null;
      while (!until.aborted && held.length + returned.flat().length >= options.maxPages) await changes.wait();
    }
  };
  void readAll()
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
    next: async (): Promise<CompletedPage | null> => {
      while (held.length === 0 && !finished) await changes.wait();
      const [first] = held;
      if (first === undefined || until.aborted) return null;
      const page = await first.page.catch(unlessStopped);
      if (page === null || until.aborted) return null;
      const following = completeAfterFirst(held);
      const joined = countJoined([page, ...following], options.maxJoined);
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
function completeAfterFirst(held: readonly HeldPage[]): CompletedPage[] {
  const pages = held.slice(1).map((entry) => entry.complete);
  const end = pages.indexOf(null);
  return pages.slice(0, end === -1 ? pages.length : end).filter((page) => page !== null);
}

async function complete(
  reading: Promise<ReceivedPage>,
  ticket: MemoryTicket,
  options: ReadAheadOptions,
  until: AbortSignal,
): Promise<CompletedPage> {
  const received = await reading;
  const receivedAt = options.monotonic();
  if (leadsFurther(received)) await options.afterNextRequest(until);
  const page = received.check();
  const completed = await options.complete(page.checked, ticket, until);
  const { items, polledAt } = page;
  return { ...page, completed, timings: [{ items, polledAt, receivedAt, loadedAt: options.monotonic() }] };
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
