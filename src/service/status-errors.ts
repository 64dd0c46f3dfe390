import type { Trouble } from '../sync/ports.js';
import { ServiceError } from './service-error.js';

/** The operations of the service (interface 1.6). */
export type Operation = 'submit' | 'feed' | 'run';

const OPERATION_NAMES: Readonly<Record<Operation, string>> = {
  submit: 'the submission (POST /scans)',
  feed: 'the delivery feed (GET /scans)',
  run: 'the single run (GET /scans/{scanId})',
};

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

/** 409 of a submission. Another request needs another key. */
export class ConflictError extends HttpStatusError {
  readonly remedy = 'data';
  constructor(refusal: Refusal) {
    super(refusal, 'the Idempotency-Key was already used with a different request');
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
