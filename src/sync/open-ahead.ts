import type { Line } from './byte-budget.js';
import type { FeedContext } from './context.js';
import { type DeadEnd, pageLimitAt } from './end-of-feed.js';
import type { Position } from './ports.js';
import { type ReadAhead, readAhead } from './read-ahead.js';
import { receivePageWithin } from './read-page.js';

/** How pages are read ahead. */
export interface Ahead {
  /** Whose memory they take. */
  readonly line: Line;
  /** So many are handed out as one at most. */
  readonly maxJoined: number;
  /** The position that led nowhere last. */
  readonly deadEnd: DeadEnd | null;
}

/** Reads the feed ahead from a position on, within the memory budget, and loads what its pages lack. */
export function openAhead(
  start: Position,
  { line, maxJoined, deadEnd }: Ahead,
  context: Pick<FeedContext, 'service' | 'store' | 'read' | 'clock' | 'pageLimit' | 'budget' | 'loader' | 'pagesAhead'>,
  signal: AbortSignal,
): ReadAhead {
  const { budget, store, loader, clock, pageLimit, pagesAhead: maxPages } = context;
  return readAhead(
    start,
    {
      read: (room, at, until) =>
        receivePageWithin(room, { ...context, pageLimit: pageLimitAt(at, deadEnd, pageLimit) }, at, until),
      // A timer, not less: the client of the service writes a request on a used connection one turn of the event loop later.
      afterNextRequest: (until) => clock.sleep(0, until),
      complete: (draft, room, until) => loader.completePage(draft, room, until),
      announce: ({ entries }) => {
        // No harm where it fails: the commit itself meets what is wrong.
        store.announce(entries.map(({ accepted: { run } }) => run.scanId)).catch(() => {});
      },
      maxPages,
      maxJoined,
      openRoom: () => budget.open(line),
    },
    signal,
  );
}
