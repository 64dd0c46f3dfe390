import type { QuarantineEntry } from '../ports/index.js';
import { MostlyBad, type UnusableReason } from './unusable-entries.js';

/** Minimum number of pages to judge together, including the current one. At the start there are fewer. */
const MIN_PAGES = 3;
/** Minimum number of entries to judge. If pages are small, more of them are included. */
const MIN_ENTRIES = 100;

/** How much of a page is unusable. */
export interface PageQuality {
  readonly entries: number;
  /** Why each entry that is to be quarantined is unusable. */
  readonly unusable: readonly UnusableReason[];
}

/** @param quarantine entries of the page that are not in quarantine yet; others do not show that something changed */
export function pageQuality(entries: number, quarantine: readonly QuarantineEntry[]): PageQuality {
  const open = quarantine.filter(({ state }) => state === 'open'); // repaired entries are stored
  return { entries, unusable: open.map(({ reason, detail }) => ({ reason, detail })) };
}

/** Holds a feed or a pass if most of its entries are unusable, so that they are not all quarantined (promise 5). */
export class Breaker {
  /** The latest committed pages that are judged together with the next one. */
  #committed: readonly PageQuality[] = [];

  /**
   * Checks whether the unusable entries of a page can be quarantined. Changes nothing, so the same page can be checked again.
   * @throws MostlyBad
   */
  check(page: PageQuality): void {
    if (page.unusable.length === 0) return;
    const pages = latestOf([...this.#committed, page]);
    const entries = countEntries(pages);
    const unusable = pages.flatMap((judged) => judged.unusable);
    if (entries >= MIN_ENTRIES && unusable.length * 2 >= entries) throw new MostlyBad(entries, unusable);
  }

  committed(page: PageQuality): void {
    if (page.entries > 0) this.#committed = latestOf([...this.#committed, page]);
  }
}

/** Returns the last pages that are judged together. */
function latestOf(pages: readonly PageQuality[]): readonly PageQuality[] {
  let latest = pages.slice(-MIN_PAGES);
  while (latest.length < pages.length && countEntries(latest) < MIN_ENTRIES) latest = pages.slice(-latest.length - 1);
  return latest;
}

function countEntries(pages: readonly PageQuality[]): number {
  return pages.reduce((sum, { entries }) => sum + entries, 0);
}
