import type { Failure } from '../../core/errors.js';

type Details = Pick<ServiceError, 'retryAfterMs' | 'retryForMs' | 'status' | 'germanText' | 'code'>;

/**
 * An error of the client. Every one is of this class, except for the reason of a caller's own abort. The message has the cause
 * and the remedy in one line. Neither it nor any property contains the key, a cursor or document content.
 */
export class ServiceError extends Error implements Failure {
  /** Minimum pause before the next try, milliseconds (`Retry-After`, at most one hour). */
  readonly retryAfterMs?: number | undefined;
  /** How long after the submission of a run it makes sense to request it again, milliseconds; set if the run is unknown. */
  readonly retryForMs?: number | undefined;
  /** The HTTP status, if there was one. */
  readonly status?: number | undefined;
  /** The service's own message (interface 2.5), one line of bounded length. */
  readonly germanText?: string | undefined;
  /** Code of Node, OpenSSL or undici, such as `ECONNREFUSED`, if the connection failed. */
  readonly code?: string | undefined;

  constructor(
    /** A stable word of low cardinality: `http_401`, `timeout`, `cut_body`, … */
    readonly kind: string,
    readonly action: Failure['action'],
    message: string,
    details: Details = {},
  ) {
    super(message);
    this.name = new.target.name;
    Object.assign(this, details);
  }
}

/** An argument is invalid, so the request was not sent. The message names the argument, not its value. */
export class InvalidArgumentError extends ServiceError {
  constructor(message: string) {
    super('invalid_argument', 'reject', message);
  }
}
