import type { ReadField } from '../../core/json/field-places.js';
import type { InterfaceField } from '../../core/run-fields.js';

/** Why a run's full result is not stored yet. */
export type PendingReason =
  | 'no_memory' // it did not fit next to the other results of its page
  | 'not_loaded' // the time or attempts allowed before a commit were used up, or there was a temporary failure
  | 'processing' // according to the single-run response the run is being processed again
  | 'not_found' // 404
  | 'still_truncated' // the single-run response does not have the full value either
  | 'older_revision' // the single-run response is older than the feed entry
  | 'newer_revision' // the single-run response is newer than the feed entry, and has no partnerTestMode
  | 'test_mode_unknown' // in full, but only an earlier revision has a partnerTestMode, and the single run was not asked
  | 'invalid_result' // the single-run response is unusable, or PostgreSQL refused it
  | 'too_large'; // the single-run response has more bytes or values than fit into memory

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
  /** Reads its fields as JSON, as they were sent or repaired. */
  readonly readField: ReadField;
  /** Values that are stored instead of those of `readField`. */
  readonly replaced: Replacements;
  /**
   * Returns a JSON object, in pieces: the fields that the interface does not know, and originals of replaced values. Null: none.
   * Many small pieces take much more memory than the JSON, so they are created when they are sent.
   */
  readonly readExtra: (() => readonly Uint8Array[]) | null;
  readonly repaired: boolean;
  /** Whether the single-run endpoint has no markdown for this revision. */
  readonly markdownAbsent: boolean;
  /** Whether it is a single-run response, and not a delivery. On a page it follows its entry. */
  readonly isAnswer: boolean;
  /** Why the entry is committed without its full result; null if it has it. */
  readonly pending: PendingReason | null;
}

/** Entries to store: of one page of the service, or of several consecutive pages. */
export type EntryBatch = readonly AcceptedEntry[];

/** Replacements for invalid optional values and for timestamps in an unusual notation, by the name of the field. */
export type Replacements = Readonly<Partial<Record<InterfaceField, string | boolean | null>>>;

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
