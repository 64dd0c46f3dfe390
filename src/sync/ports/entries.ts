/** Why a run's full result is not stored yet. */
export type PendingReason =
  | 'no_memory' // it did not fit next to the other results of its page
  | 'not_loaded' // the time or attempts allowed before a commit were used up, or there was a temporary failure
  | 'processing' // according to the single-run answer the run is being processed again
  | 'not_found' // 404
  | 'still_truncated' // the single-run answer does not have the full value either
  | 'older_revision' // the single-run answer is older than the feed entry
  | 'test_mode_unknown' // the single-run answer has a later revision and no partnerTestMode
  | 'invalid_result' // the single-run answer is unusable, or PostgreSQL refused it
  | 'too_large'; // the single-run answer has more bytes or values than fit into memory

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
  /** Interface fields whose value is replaced. The original is kept in `extra`, except for `normalised` fields. */
  readonly replaced: Readonly<Record<string, string | boolean | null>>;
  /** Those of `replaced` in which only the notation changed (a timestamp without a zone), which is not a repair. */
  readonly normalised: readonly string[];
  /** Whether it has fields that the interface does not know, which are kept in `extra`. */
  readonly unknownFields: boolean;
  readonly repaired: boolean;
  /** Whether the single-run endpoint has no markdown for this revision. */
  readonly markdownAbsent: boolean;
  /** Whether it is the single-run answer for the entry before it, and not a delivery. */
  readonly isAnswer: boolean;
  /** Why the entry is committed without its full result; null if it has it. */
  readonly pending: PendingReason | null;
}

/** Entries to store, and their JSON as received: of one page of the service, or of several consecutive pages. */
export interface EntryBatch {
  readonly pages: readonly PageJson[];
  readonly entries: readonly AcceptedEntry[];
}

/**
 * A page as received, `{"items":[…]}`. Its elements belong to the next `items` entries of the batch. Its bytes are slices of
 * the received ones, so that they are in memory only once.
 */
export interface PageJson {
  readonly items: number;
  readonly json: readonly Uint8Array[];
}

/** An entry that cannot be stored, or was stored repaired; `payload` is the entry's bytes as received. */
export interface QuarantineEntry {
  readonly scanId: string | null;
  readonly revision: number | null;
  /** A word of a fixed set (see docs/metrics.md). */
  readonly reason: string;
  /** For people. It names fields, never values. */
  readonly detail: string;
  readonly payload: Uint8Array;
  readonly state: 'open' | 'repaired';
}
