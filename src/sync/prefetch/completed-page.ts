import type { CheckedEntry } from '../page/check-page.js';
import type { FetchedPage } from '../page/read-page.js';

/** A page with its truncated results loaded, as far as that was possible. */
export interface CompletedPage extends FetchedPage {
  /** Its entries, with what was loaded for them. */
  readonly completed: readonly CheckedEntry[];
}
