import { type CheckedPage, leadsFurther } from '../page/page.js';

/** Maximum number of pages of the feed that are committed together. */
export const MAX_JOINED_PAGES = 5;
/** Maximum size of several pages that are committed together, bytes. For larger pages the fixed cost of a statement is small. */
const MAX_JOINED_BYTES = 2 * 1024 * 1024;

/**
 * Returns whether a page may be committed together with those after it, or at the same time: it is not the last, no
 * results were loaded for it, and it has nothing for the quarantine.
 */
export function isOrdinary(page: CheckedPage): boolean {
  const hasResults = page.entries.some(({ result }) => result !== undefined);
  return leadsFurther(page) && !hasResults && page.quarantine.length === 0;
}

/** Returns how many of these consecutive pages to commit together, at least 1. */
export function countJoined(pages: readonly CheckedPage[], max: number): number {
  let bytes = 0;
  const end = pages.slice(0, max).findIndex((page) => {
    bytes += page.bytes;
    return bytes > MAX_JOINED_BYTES || !isOrdinary(page);
  });
  return Math.max(1, end === -1 ? Math.min(pages.length, max) : end);
}

/**
 * Joins consecutive pages into one, from the position of the first to the next one of the last; null if there are none. So the fixed
 * cost of a statement (planning, flushing the write-ahead log, the round trip) is paid once for all of them.
 */
export function joinPages(pages: readonly CheckedPage[]): CheckedPage | null {
  const [first, last] = [pages[0], pages.at(-1)];
  if (first === undefined || last === undefined || first === last) return first ?? null;
  return {
    ...last,
    at: first.at,
    items: pages.reduce((sum, page) => sum + page.items, 0),
    polls: pages.flatMap((page) => page.polls),
    bytes: pages.reduce((sum, page) => sum + page.bytes, 0),
    provenUpTo: pages.findLast((page) => page.provenUpTo !== null)?.provenUpTo ?? null,
    entries: pages.flatMap((page) => page.entries),
    release: () => {
      for (const page of pages) page.release();
    },
  };
}
