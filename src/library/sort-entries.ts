import type { RawPage } from '../sync/ports/index.js';
import type { FeedEntry, UnusableEntry } from './entry-types.js';
import { isUnusable, readEntry } from './read-entry.js';

/** The entries of a page: those that match the interface, and the unusable ones. */
export interface SortedEntries {
  /** In the order of the feed (delivery time). Numbers are JavaScript numbers; the page's `body` has every digit. */
  readonly entries: readonly FeedEntry[];
  /** Entries that do not match the interface (2.1). The cursor passes them: keep them for a person. */
  readonly unusable: readonly UnusableEntry[];
}

/** Reads the entries of a page one by one, so that a bad entry does not hide the rest. */
export function sortEntries(page: RawPage): SortedEntries {
  const entries: FeedEntry[] = [];
  const unusable: UnusableEntry[] = [];
  itemsOf(page).forEach((entry, index) => {
    const read = readEntry(entry, page.places.repeatedOf(index));
    if (isUnusable(read)) unusable.push({ index, reason: read.reason, detail: read.detail, entry });
    else entries.push(read);
  });
  return { entries, unusable };
}

/** Returns the entries with their long values, which are empty in `items`. */
function itemsOf({ body }: RawPage): readonly unknown[] {
  return (JSON.parse(new TextDecoder().decode(body)) as { readonly items: readonly unknown[] }).items;
}
