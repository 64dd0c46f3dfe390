import type { CheckedEntry } from '../page/check-page.js';
import type { FetchedPage } from '../page/read-page.js';
import type { StoredPage } from '../ports/index.js';

/** A page with its truncated results, as far as they could be loaded. */
export interface CompletedPage extends FetchedPage {
  /** Its entries, with the loaded results. */
  readonly completed: readonly CheckedEntry[];
  /** When it was read: one timing, or one for each of the pages that are committed together. */
  readonly timings: StoredPage['timings'];
}
