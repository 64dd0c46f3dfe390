import type { StoredPage } from '../../sync/ports/index.js';

/** Exports the life of each committed page as spans. */
export interface PageTracer {
  pageStored(page: StoredPage, feed: string): void;
  /** Exports the remaining spans, as far as that is possible within a short time. Never rejects. */
  close(): Promise<void>;
}
