import type { CommitCounts } from '../../core/counts.js';
import type { EntryBatch, QuarantineEntry } from './entries.js';
import type { FeedFilters } from './service.js';

/** The right to write to a feed. Its epoch is checked inside every transaction. */
export interface LeaseGrant {
  readonly feed: string;
  readonly holder: string;
  readonly epoch: number;
  /** The filters that the feed had until now, if they were different. */
  readonly filtersBefore: FeedFilters | null;
}

/** Rows, history, quarantine and cursor, under the fence, in one transaction. */
export interface PageCommit {
  readonly lease: LeaseGrant;
  /** The cursor the page was read from. The commit is void if the stored one differs. */
  readonly from: string | null;
  /** The new cursor; equal to `from` if there is no `nextCursor`. */
  readonly to: string | null;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  readonly freshness: FreshnessClaim | null;
}

/** What a commit claims about freshness. Monotonic times, which the store converts to the database's clock. */
export interface FreshnessClaim {
  /** The poll saw the end of the feed: everything up to its sending is here. */
  readonly atEnd: boolean;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time up to which the page proves the data to be complete; null if it proves nothing. */
  readonly lastDelivered: number | null;
  /** The delivery time that this is, by the service's clock. */
  readonly lastDeliveredAt: Date | null;
}

/** `fenced`: nothing was written, since another process holds the feed or the stored position is not the expected one. */
export type CommitOutcome =
  | { readonly kind: 'committed'; readonly counts: CommitCounts; readonly asOf: Freshness }
  | { readonly kind: 'fenced' };

/** How fresh a feed is, at a moment. */
export interface Freshness {
  /** Monotonic time of this process when it was read. */
  readonly readAt: number;
  readonly dataCompleteAsOf: Date | null;
  /** Age of `dataCompleteAsOf` at `readAt`, milliseconds by the database's clock; null while unknown. */
  readonly lagMs: number | null;
}
