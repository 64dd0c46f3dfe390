import { type FeedEntry, feedEntrySchema, misfit } from '../service/wire.js';
import type { RawPage } from '../sync/ports/index.js';

/** An entry that does not match the interface (2.1). */
export interface UnusableEntry {
  /** Its index on the page, from 0. */
  readonly index: number;
  /** The fields that do not match, without their values. */
  readonly fields: readonly string[];
  /** The entry as parsed: document content. */
  readonly entry: unknown;
}

/** Checks the entries of a page one by one, so that a bad one does not hide the others. */
export function sortEntries(page: Pick<RawPage, 'body'>): {
  readonly entries: readonly FeedEntry[];
  readonly unusable: readonly UnusableEntry[];
} {
  const entries: FeedEntry[] = [];
  const unusable: UnusableEntry[] = [];
  itemsOf(page).forEach((entry, index) => {
    const { data, error } = feedEntrySchema.safeParse(entry);
    if (error === undefined) entries.push(data);
    else unusable.push({ index, fields: misfit(error).fields, entry });
  });
  return { entries, unusable };
}

/** Returns the entries with their long values, which are empty in `items`. */
function itemsOf({ body }: Pick<RawPage, 'body'>): readonly unknown[] {
  return (JSON.parse(new TextDecoder().decode(body)) as { readonly items: readonly unknown[] }).items;
}
