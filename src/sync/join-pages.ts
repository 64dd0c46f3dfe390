import type { CompletedPage } from './read-ahead.js';
import { leadsFurther } from './read-page.js';

/** So many pages of the feed are committed together at most. */
export const PAGES_JOINED = 5;
/** So many bytes, where it is more than one page: beyond them a statement's own cost is small. */
const BYTES_JOINED = 2 * 1024 * 1024;

/** Whether a page may be committed with those after it: all of it is stored just as it came, and it leads further. */
function isJoinable(page: CompletedPage): boolean {
  const { draft, completed } = page;
  const asReceived = draft.items === completed.length && completed.every((entry) => entry.asReceived);
  const further = leadsFurther({ ...page, items: draft.items });
  return further && asReceived && draft.quarantine.length === 0;
}

/** How many of these pages, which follow each other, are to be committed together: 1 at least. */
export function countJoined(pages: readonly CompletedPage[], most: number): number {
  let bytes = 0;
  const end = pages.slice(0, most).findIndex((page) => {
    bytes += page.bytes;
    return bytes > BYTES_JOINED || !isJoinable(page);
  });
  return Math.max(1, end === -1 ? Math.min(pages.length, most) : end);
}

/**
 * Pages in a row as one: from where the first was read to where the last leads. What a statement costs besides its rows
 * (planning, the write-ahead log's way to the disk, the way there and back) is paid once for all of them.
 */
export function joinPages(first: CompletedPage, more: readonly CompletedPage[]): CompletedPage {
  const last = more.at(-1);
  if (last === undefined) return first;
  const pages = [first, ...more];
  return {
    ...last,
    at: first.at,
    through: pages.flatMap((page) => page.through),
    bytes: pages.reduce((sum, page) => sum + page.bytes, 0),
    provenUpTo: pages.findLast((page) => page.provenUpTo !== null)?.provenUpTo ?? null,
    draft: {
      pages: pages.flatMap((page) => page.draft.pages),
      items: pages.reduce((sum, page) => sum + page.draft.items, 0),
      entries: pages.flatMap((page) => page.draft.entries),
      quarantine: [],
    },
    completed: pages.flatMap((page) => page.completed),
  };
}
