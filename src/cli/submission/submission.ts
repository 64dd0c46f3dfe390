import type { Submission } from '../../service/wire.js';

/** What became of one file. */
export interface SubmittedFile {
  /** As it was given, or found in a folder. */
  readonly file: string;
  /**
   * `submitted`: a new run was made. `repeated`: there was one already, by an earlier command or for the same content in
   * this one. `failed`: refused, or not answered. `interrupted`: it was on its way, and may have arrived. `not_sent`.
   */
  readonly outcome: 'submitted' | 'repeated' | 'failed' | 'interrupted' | 'not_sent';
  readonly idempotencyKey: string;
  readonly scanId: string | null;
  readonly status: Submission['status'] | null;
  /** The service's address of the run, for a person. */
  readonly statusUrl: string | null;
  /** Of a run that has failed and was waited for (interface 2.1). */
  readonly failureReason: string | null;
  /** German, of the same. */
  readonly error: string | null;
  /** Why it was not submitted, or cannot be waited for, and what to do. */
  readonly problem: Problem | null;
}

export interface Problem {
  /** A stable word, such as `http_400`. */
  readonly kind: string;
  readonly message: string;
  /** It may pass by itself. */
  readonly passing: boolean;
}

export function nothingSent(file: string, idempotencyKey: string): SubmittedFile {
  const unknown = { scanId: null, status: null, statusUrl: null, failureReason: null, error: null, problem: null };
  return { file, outcome: 'not_sent', idempotencyKey, ...unknown };
}
