import type { EntryBatch, PendingReason, QuarantineEntry } from './entries.js';
import type { PassStore } from './passes.js';
import type { FeedFilters } from './service.js';

/** What a commit may say about freshness. Instants of the monotonic clock, which the store dates by the database's clock. */
export interface Freshness {
  /** The poll saw the end of the feed: everything up to its sending is here. */
  readonly atEnd: boolean;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time up to which the page proves the data to be complete; null if it proves nothing. */
  readonly lastDelivered: number | null;
  /** The delivery time that this is, by the service's clock. */
  readonly lastDeliveredAt: Date | null;
}

/** Rows, history, quarantine and cursor, under the fence, in one transaction. */
export interface PageCommit {
  readonly lease: LeaseGrant;
  /** The cursor the page was read from. The commit is void if the stored one differs. */
  readonly from: string | null;
  /** The new cursor; equal to `from` where it must stay (no `nextCursor`). */
  readonly to: string | null;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  readonly freshness: Freshness | null;
}

export interface CommitCounts {
  readonly inserted: number;
  readonly updated: number;
  /** Of those updated: the revision was stored already, and got what it lacked. */
  readonly filled: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly quarantined: number;
  readonly conflicts: number;
  /** By scan id, the entries whose revision this commit was the first to store: not those that were filled. */
  readonly stored: readonly string[];
}

/** `fenced`: nothing was written, since another process holds the feed or the stored position is not the expected one. */
export type CommitOutcome =
  | { readonly kind: 'committed'; readonly counts: CommitCounts; readonly asOf: AsOf }
  | { readonly kind: 'fenced' };

/** How fresh a feed is, at a moment. */
export interface AsOf {
  /** Monotonic time of this process when it was read. */
  readonly readAt: number;
  readonly dataCompleteAsOf: Date | null;
  /** Age of `dataCompleteAsOf` at `readAt`, milliseconds by the database's clock; null while unknown. */
  readonly lagMs: number | null;
}

/** The right to write to a feed. Its epoch is checked inside every transaction. */
export interface LeaseGrant {
  readonly feed: string;
  readonly holder: string;
  readonly epoch: number;
  /** The filters that the feed had until now, where they were others. */
  readonly filtersBefore: FeedFilters | null;
}

/** Where a feed stands. */
export interface Position {
  readonly cursor: string | null;
  /** Where it goes on while it has no cursor; null is the beginning of the history. */
  readonly since: Date | null;
}

/** Places that a feed may go back to. */
export interface EarlierPositions {
  /** Newest first, each once, without the present one. */
  readonly cursors: readonly string[];
  /** The latest delivery time that was read since the feed was last rewound, or the one it was rewound to. */
  readonly readUpTo: Date | null;
}

/** Why a position was left: the service rejected its cursor, or a person asked for it. */
export type MoveReason = 'rejected' | 'rewind';

/** Figures about a feed that every replica reports alike. */
export interface FeedStatus extends AsOf {
  readonly lastPollAt: Date | null;
  readonly lastCommitAt: Date | null;
  /** The feed's own end was reached, if not yet from its beginning. */
  readonly endReached: boolean;
  /** Since when the cursor is missing, stands still or goes in circles; null: it leads on. */
  readonly stuckSince: Date | null;
  /** Everything from its beginning to its end was read. */
  readonly backfillComplete: boolean;
  readonly pendingResults: number;
  readonly quarantinedEntries: number;
  readonly leaseHolder: string | null;
}

/** What the database holds of a scan. */
export interface StoredResult {
  readonly scanId: string;
  readonly revision: number;
  readonly complete: boolean;
  /** It is stored, or it is known that there is none. */
  readonly markdownKnown: boolean;
}

/** A run whose result is due to be tried again. */
export interface PendingRun {
  readonly scanId: string;
  readonly revision: number;
  /** As the feed entry had it: a result of another status is not the one that is waited for. */
  readonly status: 'completed' | 'failed';
  readonly reason: PendingReason;
  readonly attempts: number;
  /** Milliseconds since it became pending. */
  readonly pendingForMs: number;
}

/** PostgreSQL, as the engine uses it. Everything rejects with a {@link Trouble}. */
export interface FeedStore extends PassStore {
  /** Takes the lease if it is free, expired, already ours or held by `replaced`; null while another process holds it. */
  acquireLease(feed: FeedIdentity, holder: string, ttlMs: number, replaced?: string | null): Promise<LeaseGrant | null>;
  /** Extends the lease; false when it was lost. */
  renewLease(lease: LeaseGrant, ttlMs: number): Promise<boolean>;
  /** Gives the lease back, so that a standby need not wait for it to expire. */
  releaseLease(lease: LeaseGrant): Promise<void>;
  readPosition(feed: string): Promise<Position>;
  readEarlierPositions(feed: string): Promise<EarlierPositions>;
  /** Runs of any feed whose delivery lies between these times (service clock), both included; the latest first. */
  findDelivered(from: Date, to: Date, limit: number): Promise<readonly Pick<StoredResult, 'scanId' | 'revision'>[]>;
  /** Goes on elsewhere and keeps the old cursor in the history; false when the lease was lost or the cursor moved. */
  movePosition(lease: LeaseGrant, from: string | null, to: Position, reason: MoveReason): Promise<boolean>;
  /** Notes that the feed's cursor leads nowhere, or that it leads on. Nothing happens where the lease was lost. */
  noteStuck(lease: LeaseGrant, stuck: boolean): Promise<void>;
  readStatus(feed: string): Promise<FeedStatus>;
  /** What is stored of these scans, so that nothing is downloaded twice. */
  findStored(scanIds: readonly string[]): Promise<readonly StoredResult[]>;
  /**
   * Told of scans whose commit waits for earlier ones: it may fetch meanwhile what theirs will need. Nobody waits for it,
   * and its failure does no harm.
   */
  announce(scanIds: readonly string[]): Promise<void>;
  commitPage(commit: PageCommit): Promise<CommitOutcome>;
  /** Writes the entries and rolls back. Rejects with a `Trouble` of remedy `data` where PostgreSQL refuses one of their values. */
  tryEntries(lease: LeaseGrant, batch: EntryBatch): Promise<void>;
  /**
   * Takes over pending runs that nobody retries: of feeds that are gone, or of the same address and without a leader for a
   * day. Their number, a bounded one; 0 where the lease was lost.
   */
  adoptPending(lease: LeaseGrant): Promise<number>;
  /** Runs of the feed whose next try is due: those that a page left for want of memory, then the longest waiting. */
  duePending(feed: string, limit: number): Promise<readonly PendingRun[]>;
  /** Those of the entries that are not in the feed's quarantine yet, in whatever state. */
  notYetQuarantined(feed: string, entries: readonly QuarantineEntry[]): Promise<readonly QuarantineEntry[]>;
  /** Stores a loaded result (as a batch without a cursor), under the epoch. */
  commitResults(lease: LeaseGrant, batch: EntryBatch, quarantine?: readonly QuarantineEntry[]): Promise<CommitOutcome>;
  /** Notes a failed try and when the next is due. False when the lease was lost. */
  postponePending(lease: LeaseGrant, tries: readonly PostponedTry[]): Promise<boolean>;
}

export interface PostponedTry {
  readonly scanId: string;
  readonly revision: number;
  readonly reason: PendingReason;
  readonly nextTryInMs: number;
}

/** What a feed is, as stored with it. */
export interface FeedIdentity {
  readonly name: string;
  readonly baseUrl: string;
  readonly filters: FeedFilters;
  readonly keepHistory: boolean;
  /** Where a feed that has never started begins; `live`: with its new runs, the history is read behind them. */
  readonly start: 'beginning' | 'now' | 'live' | Date;
}
