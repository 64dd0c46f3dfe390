import type { FeedContext } from '../context.js';
import type { Priority } from '../memory/memory-budget.js';
import { type DeadEnd, pageLimitAt } from '../page/end-of-feed.js';
import { receivePageWithin } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { type ReadAhead, type ReadAheadOptions, readAhead } from './read-ahead.js';

/** Options for prefetching pages. */
export interface PrefetchOptions extends Pick<ReadAheadOptions, 'maxJoined'> {
  /** The priority of their memory. */
  readonly priority: Priority;
  /** The dead end that the previous page found. */
  readonly deadEnd: DeadEnd | null;
}

/** Prefetches pages from a position on, within the memory budget, and loads their truncated results. */
export function prefetchPages(
  start: Position,
  { priority, maxJoined, deadEnd }: PrefetchOptions,
  context: Pick<
    FeedContext,
    'service' | 'store' | 'read' | 'clock' | 'pageLimit' | 'budget' | 'loader' | 'maxHeldPages'
  >,
  signal: AbortSignal,
): ReadAhead {
  const { budget, loader, clock, pageLimit, maxHeldPages: maxPages } = context;
  return readAhead(
    start,
    {
      read: (ticket, at, until) =>
        receivePageWithin(ticket, { ...context, pageLimit: pageLimitAt(at, deadEnd, pageLimit) }, at, until),
      // Needs a timer: on a used connection the client writes a request only in the next iteration of the event loop.
      afterNextRequest: (until) => clock.sleep(0, until),
      complete: (page, ticket, until) => loader.completePage(page, ticket, until),
      maxPages,
      maxJoined,
      enqueue: () => budget.enqueue(priority),
      monotonic: clock.monotonic,
    },
    signal,
  );
}
