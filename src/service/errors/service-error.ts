import type { Failure } from '../../core/errors.js';

/**
 * Base class of all errors of the client, except for the reason of a caller's own abort. The message has the cause and the
 * remedy in one line. Neither it nor any property contains the key, a cursor or document content.
 */
export abstract class ServiceError extends Error implements Failure {
  /** A stable word of low cardinality: `http_401`, `timeout`, `cut_body`, … */
  abstract readonly kind: string;
  abstract readonly action: Failure['action'];
  /** Minimum pause before the next try, milliseconds (`Retry-After`, at most one hour). */
  readonly retryAfterMs?: number | undefined;
  /** How long after the submission of a run it makes sense to request it again, milliseconds; set if the run is unknown. */
  readonly retryForMs?: number | undefined;
  /** The HTTP status, if there was one. */
  readonly status?: number | undefined;
  /** The service's own message (interface 2.5), one line of bounded length. */
  readonly germanText?: string | undefined;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}
