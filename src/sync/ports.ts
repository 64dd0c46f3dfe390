/**
 * What the engine needs from outside, in its own words. `service/`, `storage/` and `observability/` fit these
 * shapes; the engine imports none of them, so that it runs under a virtual clock in simulation.
 */

/** Time, waiting and chance. All durations in the engine are milliseconds. */
export interface Clock {
  /** Wall-clock time, milliseconds since 1970. Only for ages against the service's clock. */
  now(): number;
  /** Monotonic time in milliseconds. For durations; never goes back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Uniform in [0, 1), for jitter. */
  random(): number;
}

/** How a failed request or statement is to be taken. Errors of `service/` and `storage/` carry these fields. */
export interface Trouble {
  /** Stable, low-cardinality word for metrics and logs, such as `http_500`, `timeout`, `connection`. */
  readonly kind: string;
  /**
   * `retry`: passing, back off and try again. `hold`: nothing will change by itself soon (credentials, settings, schema):
   * report and try again slowly. `data`: the values themselves were refused.
   */
  readonly remedy: 'retry' | 'hold' | 'data';
  /** Floor for the pause before the next try, milliseconds. */
  readonly retryAfterMs?: number | undefined;
}

/** Read-time filters of the feed (interface 4.2). Always sent, never left to defaults. */
export interface FeedFilters {
  readonly status: readonly ('completed' | 'failed')[];
  readonly environment: 'prod' | 'test' | 'all';
  readonly documentType: string | null;
}

/** Where a feed page starts (interface 4.2: `cursor` and `since` exclude each other). */
export type FeedStart = { readonly cursor: string } | { readonly since: Date } | { readonly beginning: true };

export interface FeedRequest {
  readonly filters: FeedFilters;
  readonly start: FeedStart;
  /** 1 to 200. */
  readonly limit: number;
  readonly markdown: boolean;
}

/** A response body that is JSON of the interface's outer shape; its entries are not checked. */
export interface RawPage {
  /** The body as received (decompressed). */
  readonly body: Uint8Array;
  /** The body as text; where it is not valid UTF-8, with U+FFFD. */
  readonly text: string;
  readonly validUtf8: boolean;
  /** The parsed entries. For steering only: JavaScript numbers may have lost digits. */
  readonly items: readonly unknown[];
  /** Null where the service sent none, or an empty one. */
  readonly nextCursor: string | null;
  /** The `Date` header, if sent, whole seconds. */
  readonly serviceDate: Date | null;
}

/** A single run as received (interface 4.3). */
export interface RawRun {
  readonly body: Uint8Array;
  readonly text: string;
  readonly validUtf8: boolean;
  /** The parsed object. For steering only. */
  readonly run: Readonly<Record<string, unknown>>;
}

/** The service, as the engine uses it. Both reject with a {@link Trouble} or with the signal's reason. */
export interface FeedService {
  readPage(request: FeedRequest, signal: AbortSignal): Promise<RawPage>;
  readRun(scanId: string, options: { markdown: boolean; maxBytes: number }, signal: AbortSignal): Promise<RawRun>;
}

/** Why a run's full result is not stored yet. */
export type PendingReason =
  | 'not_loaded' // the time or tries allowed before a commit were used up, or it failed in passing
  | 'processing' // the single-run endpoint says the run is processing again
  | 'not_found' // 404
  | 'still_truncated' // the single-run answer has no full value either
  | 'older_revision' // the single-run answer is older than the feed entry
  | 'invalid_result' // the single-run answer is unusable, or PostgreSQL refused it
  | 'too_large'; // over the bound of one result

/** The steering fields of an entry that passed the checks (interface 2.1). */
export interface FeedRun {
  readonly scanId: string;
  readonly revision: number;
  readonly status: 'completed' | 'failed';
  readonly hasData: boolean;
  readonly hasMarkdown: boolean;
  readonly truncated: boolean;
  readonly deliveredAt: Date | null;
}

/** An entry that is to be stored. */
export interface AcceptedEntry {
  readonly run: FeedRun;
  /** Interface fields whose value is replaced; the original then goes to `extra`, unless `normalised`. */
  readonly replaced: Readonly<Record<string, string | boolean | null>>;
  /** Fields among `replaced` that only changed their notation (a timestamp without a zone): not a repair. */
  readonly normalised: readonly string[];
  readonly repaired: boolean;
  /** Set when the entry commits without its full result. */
  readonly pending: PendingReason | null;
}

/** Entries to store, and their JSON as received: `{"items":[…]}`, element n belonging to `entries[n]`. */
export interface EntryBatch {
  readonly json: string;
  readonly entries: readonly AcceptedEntry[];
}

/** An entry that cannot be stored, or was stored repaired; `payload` is the entry's bytes as received. */
export interface QuarantineEntry {
  readonly scanId: string | null;
  readonly revision: number | null;
  /** A word of a fixed set (see docs/metrics.md). */
  readonly reason: string;
  /** For a person; names fields, never values. */
  readonly detail: string;
  readonly payload: Uint8Array;
  readonly state: 'open' | 'repaired';
}

/** What a commit may say about freshness. Ages, so that no two clocks are ever compared. */
export interface Freshness {
  /** The poll saw the end of the feed: everything up to its sending is here. */
  readonly atEnd: boolean;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time that corresponds to the delivery time of the page's last entry; null where it has none. */
  readonly lastDelivered: number | null;
  /** Its delivery time as the service wrote it. */
  readonly lastDeliveredAt: Date | null;
}

/** One transaction: rows, history, quarantine and cursor together, under the fence. */
export interface PageCommit {
  readonly lease: LeaseGrant;
  /** The cursor the page was read from. The commit is void if the stored one differs. */
  readonly from: string | null;
  /** The new cursor; equal to `from` where it must stay (no `nextCursor`, or a part of a page). */
  readonly to: string | null;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  readonly freshness: Freshness | null;
}

/** A page of a sweep: rows and the sweep's own position, never the feed's cursor. */
export interface SweepCommit {
  readonly lease: LeaseGrant;
  readonly kind: SweepKind;
  readonly to: string | null;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  readonly finished: boolean;
}

/** `window`: the recent past, often; `full`: everything, now and then. */
export type SweepKind = 'window' | 'full';

/** The present or last sweep of a kind. */
export interface SweepState {
  readonly kind: SweepKind;
  readonly finished: boolean;
  /** Milliseconds since it was finished, or begun where it is not. */
  readonly ageMs: number;
  readonly since: Date | null;
  /** Delivery time of the service up to which it reads: what comes later is the cursor's business. */
  readonly until: Date;
  readonly cursor: string | null;
}

export interface CommitCounts {
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly stale: number;
  readonly quarantined: number;
  readonly conflicts: number;
  /** Entries inserted or updated by this commit, by scan id. */
  readonly stored: readonly string[];
}

/** `fenced`: another process holds the feed or moved its cursor; nothing was written. */
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
  /** The latest delivery time that was committed. */
  readonly lastDeliveredAt: Date | null;
}

/** Why a position was left: the service rejected its cursor, or a person asked for it. */
export type MoveReason = 'rejected' | 'rewind';

/** Figures about a feed that every replica reports alike. */
export interface FeedStatus extends AsOf {
  readonly lastPollAt: Date | null;
  readonly lastCommitAt: Date | null;
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
  readonly hasMarkdown: boolean;
}

/** A run whose result is due to be tried again. */
export interface PendingRun {
  readonly scanId: string;
  readonly revision: number;
  readonly attempts: number;
  /** Milliseconds since it became pending. */
  readonly pendingForMs: number;
}

/** PostgreSQL, as the engine uses it. Everything rejects with a {@link Trouble}. */
export interface FeedStore {
  /** Takes the lease if it is free, expired or already ours; null while another process holds it. */
  acquireLease(feed: FeedIdentity, holder: string, ttlMs: number): Promise<LeaseGrant | null>;
  /** Extends the lease; false when it was lost. */
  renewLease(lease: LeaseGrant, ttlMs: number): Promise<boolean>;
  /** Gives the lease back, so that a standby need not wait for it to expire. */
  releaseLease(lease: LeaseGrant): Promise<void>;
  readPosition(feed: string): Promise<Position>;
  readEarlierPositions(feed: string): Promise<EarlierPositions>;
  /** Goes on elsewhere and keeps the old cursor in the history; false when the lease was lost or the cursor moved. */
  movePosition(lease: LeaseGrant, from: string | null, to: Position, reason: MoveReason): Promise<boolean>;
  readStatus(feed: string): Promise<FeedStatus>;
  /** What is stored of these scans, so that nothing is downloaded twice. */
  findStored(scanIds: readonly string[]): Promise<readonly StoredResult[]>;
  commitPage(commit: PageCommit): Promise<CommitOutcome>;
  readSweeps(feed: string): Promise<readonly SweepState[]>;
  /** Begins a sweep; false when the lease was lost, or it is unknown how complete the feed is. */
  beginSweep(lease: LeaseGrant, kind: SweepKind, since: Date | null, until: Date): Promise<boolean>;
  commitSweep(commit: SweepCommit): Promise<CommitOutcome>;
  /** Runs of the feed whose next try is due, the longest waiting first. */
  duePending(feed: string, limit: number): Promise<readonly PendingRun[]>;
  /** Stores a loaded result (as a batch without a cursor), under the epoch. */
  commitResults(lease: LeaseGrant, batch: EntryBatch): Promise<CommitOutcome>;
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
  /** Where a feed that has never started begins: null is the beginning of the history. */
  readonly start: 'beginning' | 'now' | Date;
}

/** How a poll ended, as counted in `scanfeed_polls_total`. */
export type PollOutcome =
  | 'entries' // the page had entries
  | 'skipped' // no entries, the cursor moved past runs that the filters hide
  | 'end' // the end of the feed
  | 'stuck' // the cursor is missing, stands still or goes in circles
  | 'failed';

/** Where a failure happened, as counted in `scanfeed_errors_total`. */
export type Stage = 'feed' | 'result' | 'lease' | 'sweep';

/** What the engine tells the outside: for metrics and logs. Must not throw. */
export interface SyncObserver {
  /** The loop is alive, and its next step may take this many milliseconds (a pause, a request, a statement). */
  ticked(nextStepMs: number): void;
  polled(outcome: PollOutcome, entries: number): void;
  /** A page, or results loaded later, were committed; `deliveries`: monotonic times of delivery of the entries stored. */
  committed(counts: CommitCounts, deliveries: readonly number[]): void;
  /** How fresh the feed is now. */
  freshness(asOf: AsOf): void;
  truncated(outcome: 'resolved' | 'pending' | 'skipped', entries: number): void;
  /** A failure, and the pause until the next try; `failures` in a row. */
  failed(stage: Stage, error: unknown, failures: number, pauseMs: number): void;
  recovered(stage: Stage, failures: number): void;
  /** Figures read from the database, on every replica. */
  status(status: FeedStatus): void;
  /** A sweep stored entries that the cursor had passed by; `first`: of runs not known at all before. */
  reconciled(found: { readonly first: number; readonly later: number }): void;
  /** The service rejected the stored cursor, and the feed goes on from here. */
  cursorReset(to: Position): void;
  /** The feed is ours up to this monotonic time; null: not ours. */
  leading(until: number | null): void;
  /** The poll sent at this monotonic time saw the end of the feed; null: behind it. */
  caughtUp(polledAt: number | null): void;
}
