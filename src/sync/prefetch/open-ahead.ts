import type { FeedContext } from '../context.js';
import type { Priority } from '../memory/memory-budget.js';
import { type DeadEnd, pageLimitAt } from '../page/end-of-feed.js';
import { receivePageWithin } from '../page/read-page.js';
import type { Position } from '../ports/index.js';
import { type ReadAhead, readAhead } from './read-ahead.js';

/** How pages are prefetched. */
export interface Ahead {
  /** The priority of their memory. */
  readonly priority: Priority;
  /** Maximum number of pages that are joined for one commit. */
  readonly maxJoined: number;
  /** The position from which the page before led nowhere. */
  readonly deadEnd: DeadEnd | null;
}

/** Prefetches pages from a position on, within the memory budget, and loads their truncated results. */
export function openAhead(
  start: Position,
  { priority, maxJoined, deadEnd }: Ahead,
  context: Pick<FeedContext, 'service' | 'store' | 'read' | 'clock' | 'pageLimit' | 'budget' | 'loader' | 'pagesAhead'>,
  signal: AbortSignal,
): ReadAhead {
  const { budget, loader, clock, pageLimit, pagesAhead: maxPages } = context;
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
    },
    signal,
  );
}
