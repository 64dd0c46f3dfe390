import { type FeedFilters, hidesNothing, UNFILTERED } from '../../core/feed-filters.js';
import type { PageService, Position } from '../ports/index.js';
import { cursorRejection, type RecentCursors } from './cursors.js';
import type { CheckedPage, Ending, Next, PolledPage, PossibleEnd } from './page.js';
import { listEntries } from './probe.js';
import { startAt } from './read-page.js';

/** The page is not the end. */
export const LEADS_FURTHER: Ending = { claim: 'no', isUnclear: false, possibleEnd: null };
/** The next request would not show it either. The next poll decides. */
const IS_UNCLEAR: Ending = { claim: 'no', isUnclear: true, possibleEnd: null };
/** The page is the end, whatever follows it. */
export const IS_LAST: Ending = { claim: 'yes', isUnclear: false, possibleEnd: null };

/**
 * Returns whether a page is the end of the feed (promise 10). *Listed* is what the service lists at its position without filters; if
 * the filters hide nothing, that is the page itself. A dead end has no cursor, or one that did not move.
 *
 * | page | listed without filters | claim | what follows |
 * |---|---|---|---|
 * | with a new cursor, with entries or after `since` | | no | more |
 * | with a new cursor, without entries | nothing | yes | end |
 * | the same | entries | no | more |
 * | cursor did not move, without entries | | yes | end |
 * | dead end with entries, or without a cursor | fewer than the limit, seen the first time | no | unclear |
 * | the same | fewer than the limit, seen again at this position | if the commit has nothing new | end, else unclear |
 * | the same | as many as the limit | no | stuck; if the cursor is missing, the next request has another limit |
 * | with a cursor that cannot be used | | no | stuck |
 * | any that needs it | refused, or answered by a cache | no | unclear |
 * | any that needs it | the request failed | no | the error is thrown after the commit |
 * @param previous what the previous page found
 */
export async function findEnding(
  page: PolledPage,
  previous: PossibleEnd | null,
  filters: FeedFilters,
  service: PageService,
  signal: AbortSignal,
): Promise<Ending> {
  const listUnfiltered = unfilteredList(page, service, signal);
  const ofEmptyPage = await endingOfEmptyPage(page, filters, listUnfiltered);
  if (ofEmptyPage !== null) return ofEmptyPage;
  try {
    const possibleEnd = await findPossibleEnd(page, filters, listUnfiltered);
    const isSecondLook = possibleEnd?.isShort === true && previous?.cursor === possibleEnd.cursor;
    const isUnclear = possibleEnd !== null && possibleEnd.isShort !== false;
    return { claim: isSecondLook ? 'ifNothingNew' : 'no', isUnclear, possibleEnd };
  } catch (failure) {
    return { ...IS_UNCLEAR, failure };
  }
}

type ListUnfiltered = ReturnType<typeof unfilteredList>;

/**
 * Creates a function that lists entries at the position of a page without filters. It returns `refused` if the service refuses
 * the request like one with a rejected cursor, as it does if it binds cursors to their filters.
 */
function unfilteredList({ at }: PolledPage, service: PageService, signal: AbortSignal) {
  return async (limit: number) => {
    try {
      return await listEntries(service, { filters: UNFILTERED, start: startAt(at) }, limit, signal);
    } catch (error) {
      if (cursorRejection(error) === null) throw error;
      return 'refused';
    }
  };
}

/**
 * Returns the ending of a page without entries; null if more may follow, or it has entries. It is the end of the feed (promise 10) if
 * its cursor did not move. A cursor that moved may have skipped runs that the filters hide. Then the same position is requested once
 * without filters. The result is valid as of the page's own poll, which was sent earlier. If the service refuses that request, or a cache
 * responds instead, the next poll decides. A missing cursor proves nothing.
 */
async function endingOfEmptyPage(page: PolledPage, filters: FeedFilters, list: ListUnfiltered): Promise<Ending | null> {
  const { at, next, items } = page;
  if (items > 0 || next === null) return null;
  // The response to `since` may lack entries, and more may follow: the next page decides.
  if (at.cursor === null && at.since !== null) return null;
  if (next === at.cursor || hidesNothing(filters)) return IS_LAST;
  const listed = await list(1);
  if (listed === 'refused') return IS_UNCLEAR;
  if (listed === null || listed.items > 0) return null;
  return listed.isCached ? IS_UNCLEAR : IS_LAST;
}

/** Returns whether a page proves that everything up to a delivery time was read. */
export function reachesBeyond({ provenUpTo }: CheckedPage, until: Date): boolean {
  return provenUpTo !== null && provenUpTo > until;
}

/** Returns whether a page is a dead end: its cursor is missing or did not move. */
export function isDeadEnd({ at, next }: PolledPage): boolean {
  return next === null || next === at.cursor;
}

/** Maximum number of entries of a page (interface 8). */
const MAX_PAGE_ENTRIES = 200;

/**
 * Returns the position of the page if it is a dead end that may be the end of the feed, else null. A short page proves this only
 * if filters did not shorten it, so the same position is requested once without filters, with the same limit, unless they hide
 * nothing. If the response is full or has a cursor, the page does not prove the end. Then the next request asks for more entries:
 * a short response proves the end. At the maximum, it asks for one entry less than was listed, which should return a cursor.
 */
async function findPossibleEnd(
  page: PolledPage,
  filters: FeedFilters,
  list: ListUnfiltered,
): Promise<PossibleEnd | null> {
  const { at, next, items, limit } = page;
  if (!isDeadEnd(page) || page.cursorUnusable) return null;
  if (page.isCached) return { cursor: at.cursor, isShort: null, limit };
  const isShort = items < limit && (hidesNothing(filters) || (await isShortUnfiltered(page, list)));
  if (isShort !== false) return { cursor: at.cursor, isShort, limit };
  if (next !== null) return null;
  const another = limit < MAX_PAGE_ENTRIES ? Math.min(2 * limit, MAX_PAGE_ENTRIES) : Math.max(1, items - 1);
  return { cursor: at.cursor, isShort, limit: another };
}

/** Returns whether a short dead end is also short without filters; null if the service refuses that request, or a cache answers it. */
async function isShortUnfiltered(page: PolledPage, list: ListUnfiltered): Promise<boolean | null> {
  const listed = await list(page.limit);
  if (listed === 'refused' || listed?.isCached) return null;
  return listed !== null && listed.items < page.limit && isDeadEnd({ ...page, next: listed.next });
}

/**
 * Returns what follows a page, and remembers its cursor. A feed whose cursors go in circles is stuck.
 * @param isEnd whether the page is the end of the feed
 */
export function nextAfter(
  page: PolledPage,
  { isUnclear }: Ending,
  isEnd: boolean,
  recentCursors: RecentCursors,
): Exclude<Next, 'fenced'> {
  // Every cursor must be remembered, so this does not stop at the first known one.
  const circles = page.polls.filter(({ next }) => recentCursors.remember(next)).length > 0;
  if (isEnd) return 'end';
  if (isUnclear) return 'unclear';
  return circles || isDeadEnd(page) ? 'stuck' : 'more';
}

/** Returns how many entries to request first at a position, if it is a possible end; else null. */
export function firstLimitAt({ cursor }: Position, possibleEnd: PossibleEnd | null): number | null {
  return possibleEnd !== null && possibleEnd.cursor === cursor ? possibleEnd.limit : null;
}
