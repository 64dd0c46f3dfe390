import type { Environment, Status } from './runs.js';
import type { Switches } from './switch-types.js';

/** Fields of a run that a script can set (interface 2.1); the others are generated. */
export interface RunSpec {
  /** Identifies the run. */
  readonly scanId?: string | undefined;
  /** Default 1. */
  readonly revision?: number | undefined;
  /** Default `completed`. */
  readonly status?: Status | undefined;
  /** Default `prod`. */
  readonly environment?: Environment | undefined;
  /** A slug of `documentTypes`, or null for none. */
  readonly documentType?: string | null | undefined;
  /** File name of the submitted PDF. */
  readonly fileName?: string | undefined;
  /** The recognized sender, or null for none. */
  readonly partnerName?: string | null | undefined;
  /** Whether the sender is in test mode. */
  readonly partnerTestMode?: boolean | undefined;
  /** Confidence of the recognition, or null for none. */
  readonly ocrConfidence?: number | null | undefined;
  /** The result of a completed run, as a value; see `dataJson` for numbers that JavaScript cannot hold. */
  readonly data?: unknown;
  /** The result as JSON text, sent verbatim. */
  readonly dataJson?: string | undefined;
  /** The recognized text, or null for none. */
  readonly markdown?: string | null | undefined;
  /** Machine-readable reason of a failed run. */
  readonly failureReason?: string | null | undefined;
  /** German message of a failed run. */
  readonly error?: string | null | undefined;
  /** Time of the submission. Numbers are milliseconds since 1970. */
  readonly submittedAt?: Date | string | number | null | undefined;
  /** Time of the completion. */
  readonly completedAt?: Date | string | number | null | undefined;
  /** Place in the sequence. A time before its current end makes the run appear late, behind stored cursors. */
  readonly deliveredAt?: Date | string | number | undefined;
  /** Values to omit from the feed (`resultTruncated`); `false` includes them regardless of their size. */
  readonly truncated?: 'data' | 'markdown' | 'both' | false | undefined;
}

/** A correction or retry (interface 4.2 rule 4): the changed fields of the run. */
export interface Correction extends Omit<RunSpec, 'scanId'> {
  /** Where the new revision appears, if it differs from the switch of this name. */
  readonly redelivery?: Switches['redelivery'] | undefined;
}
