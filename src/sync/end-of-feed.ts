import { askingFirst, type PageLimit } from './page-limit.js';
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

/** Interface 8. */
const MOST_ENTRIES = 200;

/** The position from which the last page led nowhere. */
export interface DeadEnd extends Pick<Position, 'cursor'> {
  /** The page had fewer entries than were asked for: there were no more. */
  readonly isShort: boolean;
  /** Number of entries that the position is asked for next. */
  readonly limit: number;
}

/**
 * Returns the position if the page may be the last one that can be had from it, else null. A full page without a cursor does
 * not show it. Asked for one entry more it is short at the end of the feed; where no more may be asked for, one entry less
 * brings a cursor. Of several pages that were committed together none is the last: their cursor returned. Pure.
 */
export function deadEndOf({ at, next, cursorUnusable, draft, through, limit }: FetchedPage): DeadEnd | null {
  if (!isDeadEnd({ at, next }) || cursorUnusable || through.length > 1) return null;
  const { cursor } = at;
  if (draft.items < limit) return { cursor, isShort: true, limit };
  return next === null ? { cursor, isShort: false, limit: limit < MOST_ENTRIES ? limit + 1 : limit - 1 } : null;
}

/** A dead end is the end of the feed once its position, asked again, brought a short page with nothing new (promise 10). Pure. */
export function isEndAfterCommit(deadEnd: DeadEnd | null, before: DeadEnd | null, counts: CommitCounts): boolean {
  return isRepeated(deadEnd, before) && counts.inserted + counts.updated === 0;
}

/** Whether a short page led nowhere from where the page before led nowhere. Pure. */
export function isRepeated(deadEnd: DeadEnd | null, before: DeadEnd | null): boolean {
  return deadEnd?.isShort === true && before !== null && deadEnd.cursor === before.cursor;
}

/** The limit of a page at a position: that of the dead end where it is one. */
export function pageLimitAt({ cursor }: Position, deadEnd: DeadEnd | null, limit: PageLimit): PageLimit {
  return deadEnd !== null && deadEnd.cursor === cursor ? askingFirst(deadEnd.limit, limit) : limit;
}

function hidesNothing({ status, environment, documentType }: FeedFilters): boolean {
  return status.includes('completed') && status.includes('failed') && environment === 'all' && documentType === null;
}

const UNFILTERED: FeedFilters = { status: ['completed', 'failed'], environment: 'all', documentType: null };
