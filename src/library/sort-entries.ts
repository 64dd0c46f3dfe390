import { type FeedEntry, feedEntrySchema, misfit } from '../service/wire.js';
import type { RawPage } from '../sync/ports/index.js';

/** An entry that does not fit the interface (2.1). */
export interface UnusableEntry {
  /** Its place on the page, from 0. */
  readonly index: number;
  /** The fields that do not fit, never their values. */
  readonly fields: readonly string[];
  /** The entry as parsed: document content. */
  readonly entry: unknown;
}

/** The entries of a page, checked one by one: a bad one does not hide its neighbours. */
export function sortEntries(page: Pick<RawPage, 'items' | 'valuesSkipped' | 'body'>): {
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

/** With long values, which a large page is read without. */
function itemsOf({
  items,
  valuesSkipped,
  body,
}: Pick<RawPage, 'items' | 'valuesSkipped' | 'body'>): readonly unknown[] {
  if (!valuesSkipped) return items;
  return (JSON.parse(new TextDecoder().decode(body)) as { readonly items: readonly unknown[] }).items;
}
