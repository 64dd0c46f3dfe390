import { askingFirst, type PageLimit } from './page-limit.js';
import type { CommitCounts, FeedFilters, FeedService, Position } from './ports.js';
import { listEntries, listsAnything } from './probe.js';
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

/** Whether a page proves to reach beyond a delivery time: then everything up to that was read. */
export function reachesBeyond({ provenUpTo }: Pick<FetchedPage, 'provenUpTo'>, until: Date): boolean {
  return provenUpTo !== null && provenUpTo > until;
}

/** Whether a page leads nowhere: its cursor is missing or did not move. */
export function isDeadEnd({ at, next }: Pick<FetchedPage, 'at' | 'next'>): boolean {
  return next === null || next === at.cursor;
}

/** Interface 8. */
const MOST_ENTRIES = 200;

/** The position from which the last page led nowhere. */
export interface DeadEnd extends Pick<Position, 'cursor'> {
  /** Whether fewer entries follow the position, hidden ones included, than were asked for; null: the service refuses to say. */
  readonly isShort: boolean | null;
  /** Number of entries that the position is asked for next. */
  readonly limit: number;
}

/** What of a page tells a dead end. */
export type AnsweredPage = PolledPage & Pick<FetchedPage, 'cursorUnusable' | 'through' | 'limit'>;

/**
 * Returns the position if the page may be the last one that can be had from it, else null. Filters may have shortened the page,
 * so they count only if they hide nothing: otherwise the same position is asked once without filters, with the same limit.
 * Where that brings a full page or a cursor, the page does not show the end. Asked for more entries it does, if it is the end;
 * where no more may be asked for, one entry less than it listed brings a cursor. Of several pages that were committed together
 * none is the last: their cursor returned.
 */
export async function findDeadEnd(
  page: AnsweredPage,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<DeadEnd | null> {
  const { at, next, draft, limit } = page;
  if (!isDeadEnd(page) || page.cursorUnusable || page.through.length > 1) return null;
  const isShort = draft.items < limit && (await isShortUnfiltered(page, filters, service, signal));
  if (isShort !== false) return { cursor: at.cursor, isShort, limit };
  if (next !== null) return null;
  const another = limit < MOST_ENTRIES ? Math.min(2 * limit, MOST_ENTRIES) : Math.max(1, draft.items - 1);
  return { cursor: at.cursor, isShort, limit: another };
}

/** Whether a short page that leads nowhere is the same without filters; null if the service refuses to say. */
async function isShortUnfiltered(
  { at, limit }: AnsweredPage,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<boolean | null> {
  if (hidesNothing(filters)) return true;
  try {
    const listed = await listEntries(service, { filters: UNFILTERED, start: startAt(at) }, limit, signal);
    return listed !== null && listed.items < limit && isDeadEnd({ at, next: listed.next });
  } catch (error) {
    if (mayRejectCursor(error) === null) throw error;
    return null;
  }
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
