import type { CommitCounts, FeedFilters, FeedService, Position } from './ports.js';
import { listsAnything } from './probe.js';
import { type FetchedPage, startAt } from './read-page.js';
import { mayRejectCursor } from './rejected-cursor.js';

/** What of a page tells the end. */
export type PolledPage = Pick<FetchedPage, 'at' | 'next'> & { readonly draft: Pick<FetchedPage['draft'], 'items'> };

/** `unclear`: more may follow, and the next request would not show it either, so it waits for the next poll. */
export type EndVerdict = 'end' | 'more' | 'unclear';

/**
 * Tells whether a page without entries is the end of the feed (promise 10). It is if its cursor did not move. A cursor that
 * moved may have passed runs that the filters hide, and more may follow; then the same position is asked once without
 * filters. The answer holds as of the sending of the page's own poll, which was first. A service that binds cursors to their
 * filters refuses this request as it refuses a rejected cursor; then the next poll decides. A missing cursor says nothing
 * ({@link isEndAfterCommit}).
 */
export async function isEndOfFeed(
  page: PolledPage,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<EndVerdict> {
  const { at, next, draft } = page;
  if (draft.items > 0 || next === null) return 'more';
  // `since` may leave out entries of this page, and more may follow: the next page tells.
  if (at.cursor === null && at.since !== null) return 'more';
  if (next === at.cursor || hidesNothing(filters)) return 'end';
  try {
    return (await listsAnything(service, { filters: UNFILTERED, start: startAt(at) }, signal)) ? 'more' : 'end';
  } catch (error) {
    if (mayRejectCursor(error) === null) throw error;
    return 'unclear';
  }
}

/** Whether a page leads nowhere: its cursor is missing or did not move. */
export function isDeadEnd({ at, next }: Pick<FetchedPage, 'at' | 'next'>): boolean {
  return next === null || next === at.cursor;
}

/**
 * Whether a full page has no cursor: it may be the end of the feed, and a request with another limit shows whether it is
 * ({@link PageLimit}).
 */
export function isFullWithoutCursor({ next, cursorUnusable, limit, draft: { items } }: FetchedPage): boolean {
  return next === null && !cursorUnusable && items >= limit;
}

/** The position that led nowhere last; null where the feed led on. */
export type DeadEnd = Pick<Position, 'cursor'> | null;

/**
 * Returns the position if the page is the last one that can be had from it: short, and leading nowhere. Of several pages
 * that were committed together none is: their cursor returned. Pure.
 */
export function deadEndOf({ at, next, cursorUnusable, draft: { items }, through, limit }: FetchedPage): DeadEnd {
  if (!isDeadEnd({ at, next }) || cursorUnusable || through.length > 1) return null;
  return items < limit ? at : null;
}

/** A dead end is the end of the feed once the same position, asked again, brought nothing new (promise 10). Pure. */
export function isEndAfterCommit(deadEnd: DeadEnd, before: DeadEnd, counts: CommitCounts): boolean {
  return deadEnd !== null && deadEnd.cursor === before?.cursor && counts.inserted + counts.updated === 0;
}

function hidesNothing({ status, environment, documentType }: FeedFilters): boolean {
  return status.includes('completed') && status.includes('failed') && environment === 'all' && documentType === null;
}

const UNFILTERED: FeedFilters = { status: ['completed', 'failed'], environment: 'all', documentType: null };
