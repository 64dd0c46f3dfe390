import type { Trouble } from '../sync/ports.js';

/** The operations of the service (interface 1.6). */
export type Operation = 'submit' | 'feed' | 'run';

const OPERATION_NAMES: Readonly<Record<Operation, string>> = {
  submit: 'the submission (POST /scans)',
  feed: 'the delivery feed (GET /scans)',
  run: 'the single run (GET /scans/{scanId})',
};

/**
 * Everything the client rejects with, apart from the reason of a caller's own abort. Messages name the cause and the
 * remedy in one line; neither they nor any property hold the key, a cursor or document content.
 */
export abstract class ServiceError extends Error implements Trouble {
  /** Stable, low-cardinality word: `http_401`, `timeout`, `cut_body`, … */
  abstract readonly kind: string;
  abstract readonly remedy: Trouble['remedy'];
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

/** What is known of an answer whose status says that the request failed. */
export interface Refusal {
  readonly operation: Operation;
  readonly status: number;
  readonly germanText?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** The service answered with a status that is not success (interface 7). */
export abstract class HttpStatusError extends ServiceError {
  readonly kind: string;
  override readonly status: number;
  override readonly germanText: string | undefined;
  override readonly retryAfterMs: number | undefined;
  readonly operation: Operation;

  constructor(refusal: Refusal, meaning: string, kind = `http_${refusal.status}`) {
    const { operation, status, germanText, retryAfterMs } = refusal;
    const quoted = germanText === undefined ? '' : `; the service says: "${germanText}"`;
    super(`${OPERATION_NAMES[operation]} answered ${status}: ${meaning}${quoted}`);
    this.kind = kind;
    this.operation = operation;
    this.status = status;
    this.germanText = germanText;
    this.retryAfterMs = retryAfterMs;
  }
}

/** 400. Of the feed: the cursor, or a setting. Of a submission: the document, its type or the missing Idempotency-Key. */
export class InvalidRequestError extends HttpStatusError {
  readonly remedy: Trouble['remedy'];
  constructor(refusal: Refusal) {
    const meanings: Record<Operation, string> = {
      submit:
        'the submission is invalid; check the environment, the document type, that the file is a PDF and not too large, and whether an Idempotency-Key is mandatory',
      feed: 'the request is invalid; check the cursor and the filters',
      run: 'the request is invalid; check the scan id',
    };
    super(refusal, meanings[refusal.operation]);
    this.remedy = refusal.operation === 'submit' ? 'data' : 'hold';
  }
}

/** 401. */
export class AuthenticationError extends HttpStatusError {
  readonly remedy = 'hold';
  constructor(refusal: Refusal) {
    super(refusal, 'the API key is missing or invalid; check the key');
  }
}

/** 403. */
export class ForbiddenError extends HttpStatusError {
  readonly remedy = 'hold';
  constructor(refusal: Refusal) {
    super(refusal, 'the API key belongs to no organization; ask the operator of the service');
  }
}

/** 404. Of the feed and of a submission: no such document type. Of a single run: no such scan, perhaps not yet. */
export class NotFoundError extends HttpStatusError {
  readonly remedy: Trouble['remedy'];
  constructor(refusal: Refusal) {
    super(
      refusal,
      refusal.operation === 'run'
        ? 'no run has this scan id; check the id and that the key belongs to its organization'
        : 'the document type was not found; check its slug and that the base URL is right',
    );
    this.remedy = ({ submit: 'data', feed: 'hold', run: 'retry' } as const)[refusal.operation];
  }
}

/** 409 of a submission. */
export class ConflictError extends HttpStatusError {
  readonly remedy = 'data';
  constructor(refusal: Refusal) {
    super(refusal, 'the Idempotency-Key was already used with another file or environment; use a new key');
  }
}

/** 429. The interface shows no limits; the pause comes from `Retry-After`, where sent. */
export class RateLimitedError extends HttpStatusError {
  readonly remedy = 'retry';
  constructor(refusal: Refusal) {
    super(refusal, 'too many requests; try again later');
  }
}

/** 5xx. */
export class ServerError extends HttpStatusError {
  readonly remedy = 'retry';
  constructor(refusal: Refusal) {
    super(refusal, 'the service has an internal problem; try again later');
  }
}

/** 3xx: never followed, since the key must not leave its origin. */
export class RedirectError extends HttpStatusError {
  readonly remedy = 'hold';
  constructor(refusal: Refusal) {
    const meaning = 'a redirect, which is never followed so that the key stays with its origin; check the base URL';
    super(refusal, meaning, 'redirect');
  }
}

/** A status that the interface does not show for the operation. */
export class UnexpectedStatusError extends HttpStatusError {
  readonly remedy: Trouble['remedy'];
  constructor(refusal: Refusal) {
    super(refusal, 'a status the interface does not show; check the base URL and what stands between');
    this.remedy = refusal.status === 408 || refusal.status === 425 ? 'retry' : 'hold';
  }
}

/** The error class of a status (interface 7). */
export function httpStatusError(refusal: Refusal): HttpStatusError {
  const { status, operation } = refusal;
  if (status >= 300 && status < 400) return new RedirectError(refusal);
  if (status === 400) return new InvalidRequestError(refusal);
  if (status === 401) return new AuthenticationError(refusal);
  if (status === 403) return new ForbiddenError(refusal);
  if (status === 404) return new NotFoundError(refusal);
  if (status === 409 && operation === 'submit') return new ConflictError(refusal);
  if (status === 429) return new RateLimitedError(refusal);
  if (status >= 500 && status < 600) return new ServerError(refusal);
  return new UnexpectedStatusError(refusal);
}

/** The answer is not JSON: another content type, HTML, 204, an empty body. Says its size and hash, never its content. */
export class NotJsonError extends ServiceError {
  readonly kind = 'not_json';
  readonly remedy = 'hold';
  constructor(
    override readonly status: number,
    reason: string,
    body: { readonly size: number; readonly sha256Prefix: string },
  ) {
    super(
      `the service answered ${status} with what is not JSON: ${reason} (${body.size} bytes, sha256 ${body.sha256Prefix}…); check the base URL and what stands between`,
    );
  }
}

/** The answer is JSON that does not fit the interface. Names places and fields, never values. */
export class WrongShapeError extends ServiceError {
  readonly kind = 'wrong_shape';
  readonly remedy = 'hold';
  constructor(
    override readonly status: number,
    /** What does not fit: `the page`, `entry 3`, … */
    readonly place: string,
    readonly fields: readonly string[],
  ) {
    super(`the service answered ${status}, but ${place} does not fit the interface: ${fields.join(', ')}`);
  }
}

/** The body is over the bound on its decompressed size. Nothing of it is kept. */
export class BodyTooLargeError extends ServiceError {
  readonly kind = 'too_large';
  readonly remedy = 'hold';
  constructor(
    /** The bound, where it is the client's own and not its dispatcher's. */
    readonly maxBytes: number | undefined,
  ) {
    const allowed = maxBytes === undefined ? 'allowed' : `the ${maxBytes} bytes allowed`;
    super(
      `the answer is larger than ${allowed}; where it is a page of the feed, ask for fewer entries at once (SCANFEED_PAGE_LIMIT)`,
    );
  }
}

/** The body ended early, or its compression or framing is broken: fetch the whole of it again. */
export class CutBodyError extends ServiceError {
  readonly kind = 'cut_body';
  readonly remedy = 'retry';
  constructor(
    override readonly status: number,
    reason: string,
  ) {
    super(`the answer was cut short or damaged on its way (${reason}); try again`);
  }
}

/** The whole request took longer than allowed; waiting for a connection counts. */
export class TimeoutError extends ServiceError {
  readonly kind = 'timeout';
  readonly remedy = 'retry';
  constructor(timeoutMs: number) {
    super(`no complete answer within ${timeoutMs} ms; try again, or allow more time`);
  }
}

/** No answer: the connection could not be made, or broke before one came. */
export class ConnectionError extends ServiceError {
  readonly kind = 'connection';
  readonly remedy = 'retry';
  constructor(
    origin: string,
    /** Code of Node, OpenSSL or undici, such as `ECONNREFUSED`. */
    readonly code: string,
  ) {
    super(`no answer from ${origin} (${code}); check the address, the network and the proxy`);
  }
}

/** The service's certificate was refused; the key was not sent. */
export class CertificateError extends ServiceError {
  readonly kind = 'certificate';
  readonly remedy = 'hold';
  constructor(
    origin: string,
    readonly code: string,
  ) {
    super(
      `the certificate of ${origin} is not accepted (${code}); check its issuer, name and dates, or NODE_EXTRA_CA_CERTS`,
    );
  }
}

/** The answer is not HTTP as it should be, or its header is too large. */
export class BadHttpError extends ServiceError {
  readonly kind = 'bad_http';
  readonly remedy = 'retry';
  constructor(readonly code: string) {
    super(`the answer is not valid HTTP (${code}); check the base URL and what stands between`);
  }
}

/** The API key could not be had, or holds characters a header cannot. It is never shown. */
export class ApiKeyError extends ServiceError {
  readonly kind = 'api_key';
  readonly remedy = 'hold';
}

/** A request that would be wrong was not sent. Messages name the argument, not its value. */
export class InvalidArgumentError extends ServiceError {
  readonly kind = 'invalid_argument';
  readonly remedy = 'data';
}

/** The client was closed before or while the request ran. */
export class ClientClosedError extends ServiceError {
  readonly kind = 'closed';
  readonly remedy = 'hold';
  constructor() {
    super('the client is closed');
  }
}
