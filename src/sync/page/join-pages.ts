import { type CheckedPage, leadsFurther } from './page.js';

/** Maximum number of pages of the feed that are committed together. */
export const MAX_JOINED_PAGES = 5;
/** Maximum size of several pages that are committed together, bytes. For larger pages the fixed cost of a statement is small. */
const MAX_JOINED_BYTES = 2 * 1024 * 1024;

/**
 * Returns whether a page can be committed together with those after it, or at the same time: it is not the last, no
 * results were loaded for it, and it has nothing for the quarantine.
 */
export function isOrdinary(page: CheckedPage): boolean {
  const hasResults = page.entries.some(({ result }) => result !== undefined);
  return leadsFurther(page) && !hasResults && page.quarantine.length === 0;
}

/** Returns a page and those of the next ones to commit together with it. @param following null: not complete yet */
export function pagesToJoin(
  page: CheckedPage,
  following: readonly (CheckedPage | null)[],
  max: number,
): readonly [CheckedPage, ...CheckedPage[]] {
  const joined: [CheckedPage, ...CheckedPage[]] = [page];
  let { bytes } = page;
  for (const next of isOrdinary(page) ? following.slice(0, max - 1) : []) {
    bytes += next?.bytes ?? 0;
    if (next === null || bytes > MAX_JOINED_BYTES || !isOrdinary(next)) break;
    joined.push(next);
  }
  return joined;
}

/**
 * Joins consecutive pages into one, from the position of the first to the next one of the last. So the fixed cost of a statement
 * (planning, flushing the write-ahead log, the round trip) is paid once for all of them.
 */
export function joinPages(pages: readonly [CheckedPage, ...CheckedPage[]]): CheckedPage {
  const [first] = pages;
  if (pages.length === 1) return first;
  return {
    ...(pages.at(-1) ?? first),
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
