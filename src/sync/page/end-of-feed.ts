import type { FeedFilters, FeedService, Position } from '../ports/index.js';
import { listEntries, listsAnything } from '../recovery/probe.js';
import { mayRejectCursor } from '../recovery/rejected-cursor.js';
import { askingFirst, type PageLimit } from './page-limit.js';
import { type FetchedPage, type PolledPage, startAt } from './read-page.js';
import type { RecentCursors } from './recent-cursors.js';

/** `unclear`: more may follow, and the next request would not show it either, so it waits for the next poll. */
export type EndVerdict = 'end' | 'more' | 'unclear';

/**
 * Tells whether a page without entries is the end of the feed (promise 10). It is if its cursor did not move. A cursor that
 * moved may have passed runs that the filters hide, and more may follow; then the same position is asked once without
 * filters. The answer holds as of the sending of the page's own poll, which was first. A service that binds cursors to their
 * filters refuses this request as it refuses a rejected cursor; then the next poll decides. A missing cursor says nothing
 * ({@link findProgress}).
 */
export async function isEndOfFeed(
  page: Pick<PolledPage, 'at' | 'next' | 'items'>,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<EndVerdict> {
  const { at, next, items } = page;
  if (items > 0 || next === null) return 'more';
  // `since` may leave out entries of this page, and more may follow: the next page decides.
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
export function isDeadEnd({ at, next }: Pick<PolledPage, 'at' | 'next'>): boolean {
  return next === null || next === at.cursor;
}

/** Interface 8. */
const MOST_ENTRIES = 200;

/** The position from which the last page led nowhere. */
export interface DeadEnd extends Pick<Position, 'cursor'> {
  /** Whether fewer entries follow the position, including hidden ones, than were requested; null: the service refuses that. */
  readonly isShort: boolean | null;
  /** Number of entries to request from the position next. */
  readonly limit: number;
}

/**
 * Returns the position if the page may be the last one that can be had from it, else null. Filters may have shortened the page,
 * so they count only if they hide nothing: otherwise the same position is asked once without filters, with the same limit.
 * Where that brings a full page or a cursor, the page does not show the end. Asked for more entries it does, if it is the end;
 * where no more may be asked for, one entry less than it listed brings a cursor. Several pages that were committed together and
 * end where they began are a circle, not the end.
 */
async function findDeadEnd(
  page: PolledPage,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<DeadEnd | null> {
  const { at, next, items, limit } = page;
  if (!isDeadEnd(page) || page.cursorUnusable || page.polls.length > 1) return null;
  const isShort = items < limit && (await isShortUnfiltered(page, filters, service, signal));
  if (isShort !== false) return { cursor: at.cursor, isShort, limit };
  if (next !== null) return null;
  const another = limit < MOST_ENTRIES ? Math.min(2 * limit, MOST_ENTRIES) : Math.max(1, items - 1);
  return { cursor: at.cursor, isShort, limit: another };
}

/** Whether a short page that leads nowhere is the same without filters; null if the service refuses to say. */
async function isShortUnfiltered(
  { at, limit }: PolledPage,
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

/**
 * Where a page leads. `unclear`: perhaps this is the end; the same position, asked again later, decides. `stuck`: its cursor
 * leads nowhere.
 */
export type Progress = EndVerdict | 'stuck';

/** The facts about a page and the one before that show where it leads. */
export interface Reached {
  readonly verdict: EndVerdict;
  /** Where the page before led nowhere. */
  readonly before: DeadEnd | null;
  /** The page brought an entry that was not known yet. */
  readonly bringsNew: boolean;
  /** The cursors that earlier pages led to. */
  readonly recent: RecentCursors;
}

/**
 * Returns where a page leads, and remembers its cursor. A short page that leads nowhere is the end of the feed once its
 * position, asked again, brought nothing new (promise 10). Cursors that go in circles lead nowhere.
 */
export async function findProgress(
  page: PolledPage,
  { verdict, before, bringsNew, recent }: Reached,
  filters: FeedFilters,
  service: Pick<FeedService, 'readPage'>,
  signal: AbortSignal,
): Promise<{ readonly progress: Progress; readonly deadEnd: DeadEnd | null }> {
  const deadEnd = verdict === 'more' ? await findDeadEnd(page, filters, service, signal) : null;
  // Each cursor is remembered, also after one that is known.
  const circles = page.polls.filter(({ next }) => recent.seen(next)).length > 0;
  if (verdict !== 'more') return { progress: verdict, deadEnd };
  if (deadEnd === null || deadEnd.isShort === false) {
    return { progress: circles || isDeadEnd(page) ? 'stuck' : 'more', deadEnd };
  }
  const isRepeated = deadEnd.isShort && before?.cursor === deadEnd.cursor;
  return { progress: isRepeated && !bringsNew ? 'end' : 'unclear', deadEnd };
}

/** Returns the limit of a page at a position: that of the dead end if it is one. */
export function pageLimitAt({ cursor }: Position, deadEnd: DeadEnd | null, limit: PageLimit): PageLimit {
  return deadEnd !== null && deadEnd.cursor === cursor ? askingFirst(deadEnd.limit, limit) : limit;
}

function hidesNothing({ status, environment, documentType }: FeedFilters): boolean {
  return status.includes('completed') && status.includes('failed') && environment === 'all' && documentType === null;
}

const UNFILTERED: FeedFilters = { status: ['completed', 'failed'], environment: 'all', documentType: null };
