/** Why a run's full result is not stored yet. */
export type PendingReason =
  | 'no_memory' // it did not fit into memory with the other results of its page
  | 'not_loaded' // the time or tries allowed before a commit were used up, or it failed in passing
  | 'processing' // the single-run endpoint says the run is processing again
  | 'not_found' // 404
  | 'still_truncated' // the single-run answer has no full value either
  | 'older_revision' // the single-run answer is older than the feed entry
  | 'test_mode_unknown' // the single-run answer is of a later revision and leaves out partnerTestMode
  | 'invalid_result' // the single-run answer is unusable, or PostgreSQL refused it
  | 'too_large'; // the single-run answer has more bytes or values than can be held

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
  /** It has fields that the interface does not know; they go to `extra`. */
  readonly unknownFields: boolean;
  readonly repaired: boolean;
  /** The single-run endpoint, asked for markdown, has none of this revision. */
  readonly markdownAbsent: boolean;
  /** It is the single-run answer for the entry before it, and no delivery of its own. */
  readonly isAnswer: boolean;
  /** Set when the entry commits without its full result. */
  readonly pending: PendingReason | null;
}

/** Entries to store, and their JSON as received: of one page of the service, or of several consecutive pages. */
export interface EntryBatch {
  readonly pages: readonly PageJson[];
  readonly entries: readonly AcceptedEntry[];
}

/**
 * A page as received, `{"items":[…]}`: its elements belong to the next `items` entries of the batch. Its bytes come in
 * pieces of what was received, so that they need not be held twice.
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
  /** For a person; names fields, never values. */
  readonly detail: string;
  readonly payload: Uint8Array;
  readonly state: 'open' | 'repaired';
}
