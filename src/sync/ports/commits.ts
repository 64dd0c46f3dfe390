import type { CommitCounts } from '../../core/counts.js';
import type { EntryBatch, QuarantineEntry } from './entries.js';
import type { FeedFilters } from './service.js';

/** The right to write to a feed. Every transaction checks its epoch. */
export interface LeaseGrant {
  readonly feed: string;
  readonly holder: string;
  readonly epoch: number;
  /** The previous filters of the feed, if they were different. */
  readonly filtersBefore: FeedFilters | null;
}

/** Entries to store and to quarantine. */
export interface PageContent {
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
}

/** How the commit of a page moves the feed, and what it claims. */
export interface FeedMove {
  readonly lease: LeaseGrant;
  /** The cursor that the page was read with. Nothing is committed if the stored one differs. */
  readonly from: string | null;
  /** The new cursor; equal to `from` if there is no `nextCursor`. */
  readonly to: string | null;
  readonly freshness: FreshnessClaim;
}

/** A page of the feed: rows, history, quarantine and cursor, committed in one fenced transaction. */
export type PageCommit = FeedMove & PageContent;

/**
 * Whether a page is the end of the feed or of a pass. `ifNothingNew`: the commit decides; it claims the end if it stores, completes and
 * newly quarantines nothing. An entry that is in quarantine already is not new.
 */
export type EndClaim = 'yes' | 'ifNothingNew' | 'no';

/** Claims of a commit about freshness. Monotonic times, which the store converts to the database's clock. */
export interface FreshnessClaim {
  /** At the end of the feed, everything delivered before the poll was sent is stored. */
  readonly end: EndClaim;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time up to which the data is complete before the end; null: nothing is claimed. */
  readonly completeUpTo: number | null;
  /** The delivery time that the page proves, by the service's clock. It may be set although nothing is claimed. */
  readonly lastDeliveredAt: Date | null;
}

export interface Committed {
  readonly kind: 'committed';
  readonly counts: CommitCounts;
  readonly asOf: Freshness;
  /** Whether the page was claimed to be the end. */
  readonly endClaimed: boolean;
}

/** Nothing was written: the stored epoch, holder or position is not that of the commit. Another process took the feed, or moved it. */
export interface Fenced {
  readonly kind: 'fenced';
}

export type CommitOutcome = Committed | Fenced;

/** How fresh a feed was at a given time. */
export interface Freshness {
  /** Monotonic time of this process when it was read. */
  readonly readAt: number;
  readonly dataCompleteAsOf: Date | null;
  /** Age of `dataCompleteAsOf` at `readAt`, milliseconds by the database's clock; null while unknown. */
  readonly lagMs: number | null;
}
