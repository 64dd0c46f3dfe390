/** The document type of a run (interface 2.1), as it was at the time of the run. */
export interface DocumentType {
  /** Its identifier, such as `rechnung`. */
  readonly slug: string | null;
  /** Its display name. */
  readonly name: string | null;
}

/**
 * Fields of a run in every state (interface 2.1). An optional field that the service left out is null. Misspelt fields are
 * errors of the compiler; fields that the interface does not know are in `extra`.
 */
export interface RunFields {
  /** Identifies the run (interface 2.1). */
  readonly scanId: string;
  /** Starts at 1; a retry or a correction raises it (interface 4.2 rule 4). Keep the highest revision of each `scanId`. */
  readonly revision: number;
  /** `test` runs are processed like `prod` runs but must not be used productively (interface 1.5). */
  readonly environment: 'prod' | 'test';
  /** The document type at the time of the run (interface 2.1). */
  readonly documentType: DocumentType;
  /** Original file name of the submitted PDF (interface 2.1). */
  readonly fileName: string;
  /** The sender of the document, if one was recognized (interface 2.1). */
  readonly partnerName: string | null;
  /**
   * True if the sender is in test mode for this document type: file such a run only for checking (interface 2.1, 4.2 rule 7).
   * Also true if the service sent a value that is not a boolean. Null if it sent none.
   */
  readonly partnerTestMode: boolean | null;
  /** Confidence of the recognition as a whole; the interface gives no unit (interface 2.1). */
  readonly ocrConfidence: number | null;
  /** Time of the submission, ISO 8601 with a zone; `new Date` reads it (interface 2.1). */
  readonly submittedAt: string | null;
  /** Time at which the run was completed, ISO 8601 with a zone (interface 2.1). */
  readonly completedAt: string | null;
  /** Time of delivery in the feed, ISO 8601 with a zone; the feed is sorted by it (interface 2.1, 4.2). */
  readonly deliveredAt: string | null;
  /**
   * True if `data` or `markdown` was too large for the feed and is missing (interface 4.2 rule 6). `RecognitionClient.getRun`
   * loads it.
   */
  readonly resultTruncated: boolean;
  /** The recognized text, if it was requested with `markdown` (interface 2.1, 4.2). */
  readonly markdown: string | null;
  /**
   * Fields that the interface does not know, by name, and the originals of optional values that do not match it. Those
   * values are null in their own fields. Unknown fields of the document type are in `extra.documentType`.
   */
  readonly extra: Readonly<Record<string, unknown>>;
}

/** A run whose recognition succeeded (interface 3). */
export interface CompletedEntry extends RunFields {
  readonly status: 'completed';
  /**
   * The result; its fields are those of the document type's schema (interface 2.1). Null if the service sent none, for
   * example because `resultTruncated` is true. Numbers are JavaScript numbers, which may lose digits.
   */
  readonly data: Readonly<Record<string, unknown>> | null;
}

/** A run whose recognition failed (interface 3). It has no `data`. */
export interface FailedEntry extends RunFields {
  readonly status: 'failed';
  /** Machine-readable reason; the interface does not list the values (interface 2.1). */
  readonly failureReason: string | null;
  /** Message for people, in German (interface 2.1). */
  readonly error: string | null;
}

/** An entry of the delivery feed, which lists finished runs only (interface 2.1, 3). `status` distinguishes them. */
export type FeedEntry = CompletedEntry | FailedEntry;

/** The addition of the single-run response (interface 2.2). */
export interface SingleRunFields {
  /** The raw OCR result; the interface does not define its shape. Undefined if the service sent none. */
  readonly rawOcrResult?: unknown;
}

/** A run that is still being processed (interface 2.2, 3), also if it is a correction or a retry. */
export interface ProcessingRun extends RunFields, SingleRunFields {
  readonly status: 'processing';
}

/** A completed run, in full (interface 2.2). */
export interface CompletedRun extends CompletedEntry, SingleRunFields {}

/** A failed run (interface 2.2). */
export interface FailedRun extends FailedEntry, SingleRunFields {}

/** A single run in full (interface 2.2). `status` distinguishes its states. */
export type Run = CompletedRun | FailedRun | ProcessingRun;

/** An entry that lacks a usable value of a required field (interface 2.1). */
export interface UnusableEntry {
  /** Its index on the page, from 0. */
  readonly index: number;
  /**
   * The field that does not match: `scan_id`, `revision`, `status`, `environment`, `document_type` or `file_name`; else
   * `repeated_field` or `not_an_object`.
   */
  readonly reason: string;
  /** The reason in words, without values: `revision is not an integer from 1 to 2147483647`. */
  readonly detail: string;
  /** The entry as parsed. It contains document content. */
  readonly entry: unknown;
}
