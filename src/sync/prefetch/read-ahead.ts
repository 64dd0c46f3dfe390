import type { MemoryTicket } from '../memory/memory-budget.js';
import type { CheckedEntry, CheckedPage } from '../page/check-page.js';
import { leadsFurther, type ReceivedPage } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { linkedSignal } from '../retry/linked-signal.js';
import type { CompletedPage } from './completed-page.js';
import { countJoined, joinPages } from './join-pages.js';

export interface ReadAheadOptions {
  readonly read: (ticket: MemoryTicket, at: Position, signal: AbortSignal) => Promise<ReceivedPage>;
  /** Resolves once pending requests are sent, so that the next page is requested before this one is checked. */
  readonly afterNextRequest: (signal: AbortSignal) => Promise<void>;
  readonly complete: (page: CheckedPage, ticket: MemoryTicket, signal: AbortSignal) => Promise<readonly CheckedEntry[]>;
  /** Maximum number of pages in memory, including those that are being committed. */
  readonly maxPages: number;
  /** Maximum number of pages that are joined for one commit. */
  readonly maxJoined: number;
  /** Takes the ticket of the next page and its results. */
  readonly enqueue: () => MemoryTicket;
  readonly monotonic: () => number;
}

export interface ReadAhead {
  /**
   * Returns the next page in order once it is complete, joined with the following complete ones, which there are if the store
   * is slower than the service. Releases the memory of the previous page. Returns null after the last page. Rejects with the
   * failure of a page; no page follows it.
   */
  next(): Promise<CompletedPage | null>;
  /** Cancels all requests and releases all memory. */
  stop(): void;
}

interface HeldPage {
  readonly ticket: MemoryTicket;
  readonly page: Promise<CompletedPage>;
  /** The page, once it is complete. */
  complete: CompletedPage | null;
}

/** Reads pages from a position on. While one is committed, the next ones are requested and their results loaded. */
export function readAhead(start: Position, options: ReadAheadOptions, signal: AbortSignal): ReadAhead {
  const linked = linkedSignal(signal);
  const until = linked.signal;
  const held: HeldPage[] = [];
  const changes = createNotifier();
  let handedOut = 0;
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
      while (!until.aborted && held.length >= options.maxPages) await changes.wait();
    }
  };
  void readAll()
    .catch(() => {}) // thrown by next()
    .finally(() => {
      finished = true;
      changes.notify();
    });

  return {
    next: async () => {
      for (const { ticket } of held.splice(0, handedOut)) ticket.close();
      handedOut = 0;
      changes.notify();
      while (held.length === 0 && !finished) await changes.wait();
      const [first] = held;
      if (first === undefined) return null;
      handedOut = 1;
      const page = await first.page;
      const following = completeAfterFirst(held);
      handedOut = countJoined([page, ...following], options.maxJoined);
      return joinPages(page, following.slice(0, handedOut - 1));
    },
    stop: () => {
      linked.abort();
      linked.unlink();
      for (const { ticket } of held) ticket.close();
      changes.notify();
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
  return { ...page, completed, times: [{ items, polledAt, receivedAt, loadedAt: options.monotonic() }] };
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
