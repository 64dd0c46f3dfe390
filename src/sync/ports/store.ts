import type { CommitOutcome, Freshness, LeaseGrant, PageCommit } from './commits.js';
import type { EntryBatch, PendingReason, QuarantineEntry } from './entries.js';
import type { PassCommit, PassKind, PassStore } from './passes.js';
import type { FeedFilters } from './service.js';

/** A position in the feed. */
export interface Position {
  readonly cursor: string | null;
  /** Where the feed continues while it has no cursor; null: the beginning of the history. */
  readonly since: Date | null;
}

/** The position of a feed as it is stored. */
export interface StoredPosition extends Position {
  /** Changes when the feed gets a cursor while it has none, as after a failover that lost its cursor. */
  readonly origin: string | null;
}

/** Positions that a feed can fall back to. */
export interface EarlierPositions {
  /** Newest first, each once, without the current one. */
  readonly cursors: readonly string[];
  /** The latest delivery time that was read since the feed was last rewound, or the one it was rewound to. */
  readonly deliveredUpTo: Date | null;
  /** Where the feed started; null: at the beginning of its history. */
  readonly startSince: Date | null;
}

/** Figures about a feed that every replica reports alike. */
export interface FeedStatus extends Freshness {
  readonly lastPollAt: Date | null;
  readonly lastCommitAt: Date | null;
  /** The latest delivery time up to which the feed was read, by the service's clock. */
  readonly lastDeliveredAt: Date | null;
  /** Whether the feed has reached its end, perhaps not from its beginning. */
  readonly endReached: boolean;
  /** Since when the feed is stuck: its cursor is missing, does not move or goes in circles. Null: it is not stuck. */
  readonly stuckSince: Date | null;
  /** The time until which an operator accepts that most entries are unusable; null: the feed holds if they are. */
  readonly acceptsBadUntil: Date | null;
  /** Whether everything from its beginning to its end was read. */
  readonly initialSyncComplete: boolean;
  /** This and the next two are counted up to `MAX_COUNTED`. */
  readonly pendingResults: number;
  readonly quarantinedEntries: number;
  /** Completed runs whose data is missing, null or not an object. */
  readonly runsWithoutData: number;
  /** The living process that leads it; null: none. */
  readonly leaseHolder: string | null;
  /** The address of the service that its data is from; null: nothing was read yet. */
  readonly baseUrl: string | null;
}

/** A feed as it is stored: its figures, who can write to it, and what is left to do. */
export interface StoredFeed {
  readonly status: FeedStatus;
  /** The process that took it last, alive or not; null: it was given back. */
  readonly holder: string | null;
  readonly epoch: number;
  /** The kinds of its unfinished passes. */
  readonly unfinished: readonly PassKind[];
}

/** The stored revision of a scan. */
export interface StoredRevision {
  readonly scanId: string;
  readonly revision: number;
}

/** The stored state of a scan. */
export interface StoredResult extends StoredRevision {
  readonly complete: boolean;
  /** Whether the markdown is stored, or known not to exist. */
  readonly markdownKnown: boolean;
}

/** A run whose result is due for a retry. */
export interface PendingRun {
  readonly scanId: string;
  readonly revision: number;
  /** That of the feed entry. A result with another status is not the pending one. */
  readonly status: 'completed' | 'failed';
  readonly reason: PendingReason;
  readonly attempts: number;
  /** Milliseconds since it became pending. */
  readonly pendingForMs: number;
}

/** Takes and releases the leases of feeds. */
export interface LeaseStore {
  /**
   * Takes the feed if its holder is not alive, is `holder`, or if it has none; null while another process leads it, or a commit,
   * perhaps of a process that was killed, locks the feed.
   */
  acquireLease(feed: FeedIdentity, holder: string): Promise<LeaseGrant | null>;
  /** Gives the feed back if it names this holder, so that another process can take it at once. */
  releaseLease(lease: Pick<LeaseGrant, 'feed' | 'holder'>): Promise<void>;
}

/** Keeps the leases of processes. */
export interface ProcessStore {
  /** Renews the lease of a process, and returns the living ones. */
  renewProcess(renewal: ProcessRenewal): Promise<LivingProcesses>;
  removeProcess(holder: string): Promise<void>;
}

export interface ProcessRenewal {
  readonly holder: string;
  /** Number of feeds that it follows. */
  readonly feeds: number;
  /** Schemas whose feeds it can no longer read; there it does not count as alive. */
  readonly unusable: readonly string[];
  readonly ttlMs: number;
}

export interface LivingProcesses {
  /** The number of feeds that each living process follows, by its name; this process included. */
  readonly living: ReadonlyMap<string, number>;
  /** Whether this process had a valid lease before. */
  readonly wasAlive: boolean;
  readonly clockWasSetBack: boolean;
}

/** Reads feeds for all processes that follow them. */
export interface StatusStore {
  /** Returns each of these feeds, by its name. */
  readFeeds(feeds: readonly string[]): Promise<ReadonlyMap<string, StoredFeed>>;
  readStatus(feed: string): Promise<FeedStatus>;
  /** Forgets how fresh the feeds of a holder are: the clock of the database was set back. */
  forgetFreshness(holder: string): Promise<void>;
}

/** Keeps the position of a feed, and its earlier ones. */
export interface PositionStore {
  readPosition(feed: string): Promise<StoredPosition>;
  readEarlierPositions(feed: string): Promise<EarlierPositions>;
  /**
   * Runs that the feed stored last, delivered between these times (service clock), both included, the latest first. Those of
   * other feeds may belong to other organizations.
   */
  findDelivered(feed: string, from: Date, to: Date, limit: number): Promise<readonly StoredRevision[]>;
  /**
   * Moves the feed and keeps the old cursor in the history, as rejected by the service. Returns false if the lease was lost or the
   * cursor moved.
   */
  movePosition(lease: LeaseGrant, from: string | null, to: Position): Promise<boolean>;
  /** Stores whether the feed is stuck. No effect if the lease was lost. */
  storeStuck(lease: LeaseGrant, stuck: boolean): Promise<void>;
}

/** Commits entries. */
export interface CommitStore {
  /** Stores all of the page or nothing. After a page was committed, another commit from the same cursor is fenced. */
  commitPage(commit: PageCommit): Promise<CommitOutcome>;
  /** Is also fenced if the pass has ended, or was lost with the last commits of the database. */
  commitPass(commit: PassCommit): Promise<CommitOutcome>;
  /**
   * Writes the entries and rolls back. Rejects with a `Failure` of action `reject` if PostgreSQL refuses one of their
   * values. Resolves without a trial if the lease was lost; the commit that follows is fenced then.
   */
  tryEntries(lease: LeaseGrant, batch: EntryBatch): Promise<void>;
  /** Stores a loaded result, fenced by the lease. Does not move the cursor. */
  commitResults(lease: LeaseGrant, batch: EntryBatch, quarantine?: readonly QuarantineEntry[]): Promise<CommitOutcome>;
}

/** Keeps the pending results. */
export interface PendingStore {
  /** Returns the stored state of these scans, so that nothing is downloaded twice. */
  findStored(scanIds: readonly string[]): Promise<readonly StoredResult[]>;
  /** Returns runs of the feed whose retry is due: those that only lacked memory, then those that have waited longest. */
  duePending(feed: string, limit: number): Promise<readonly PendingRun[]>;
  /** Stores failed attempts and when the next ones are due. Returns false if the lease was lost. */
  postponePending(lease: LeaseGrant, tries: readonly PostponedTry[]): Promise<boolean>;
}

/** Keeps the unusable entries. */
export interface QuarantineStore {
  /** Returns those of the entries that are not in the feed's quarantine yet, in any state. */
  notYetQuarantined(feed: string, entries: readonly QuarantineEntry[]): Promise<readonly QuarantineEntry[]>;
}

/** PostgreSQL, as the engine uses it. All methods reject with a {@link Failure}. */
export interface FeedStore
  extends LeaseStore,
    StatusStore,
    PositionStore,
    CommitStore,
    PassStore,
    PendingStore,
    QuarantineStore {}

export interface PostponedTry {
  readonly scanId: string;
  readonly revision: number;
  readonly reason: PendingReason;
  readonly nextTryInMs: number;
}

/** Identity and settings of a feed, stored with it. */
export interface FeedIdentity {
  readonly name: string;
  readonly baseUrl: string;
  readonly filters: FeedFilters;
  readonly keepHistory: boolean;
  /** Where a new feed starts. `live`: with new runs, while a pass reads the history. */
  readonly start: 'beginning' | 'now' | 'live' | Date;
}
