import type { Failure } from '../../core/errors.js';

/**
 * Everything the client rejects with, apart from the reason of a caller's own abort. Messages name the cause and the
 * remedy in one line; neither they nor any property hold the key, a cursor or document content.
 */
export abstract class ServiceError extends Error implements Failure {
  /** Stable, low-cardinality word: `http_401`, `timeout`, `cut_body`, … */
  abstract readonly kind: string;
  abstract readonly action: Failure['action'];
  /** Floor for the pause before the next try, milliseconds (`Retry-After`, at most one hour). */
  readonly retryAfterMs?: number | undefined;
  /** The HTTP status, where there was one. */
  readonly status?: number | undefined;
  /** The service's own message (interface 2.5): one line, bounded. */
  readonly germanText?: string | undefined;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
