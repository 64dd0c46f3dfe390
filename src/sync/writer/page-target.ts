import type { CheckedPage } from '../page/page.js';
import type { CommitOutcome, EntryBatch, FeedStore, LeaseGrant, QuarantineEntry } from '../ports/index.js';
import type { Breaker } from './breaker.js';

/** The entries of a page to store and to quarantine. */
export interface PageContent {
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
}

/** Commits the content of a page together with its position, if the page was read from the stored position. */
export type CommitPage = (content: PageContent) => Promise<CommitOutcome>;

/** The feed or the pass whose pages are written. */
export interface PageTarget {
  readonly lease: LeaseGrant;
  readonly store: FeedStore;
  readonly breaker: Breaker;
  /** Maximum number of pages that are committed together. */
  readonly maxJoined: number;
  /** Maximum number of commits at the same time. In the database, the second one waits for the first. */
  readonly maxCommits: number;
  /** Called before each step that may take some time: a wait for a page, a statement. */
  onStep?(): void;
  /**
   * Returns the commit of a page, which may be sent more than once. Called once for each page, in order: what a page may claim about
   * freshness depends on those before it.
   */
  prepare(page: CheckedPage): CommitPage;
}
