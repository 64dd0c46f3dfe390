import type { Failure } from '../../core/errors.js';
import { UNKNOWN_RUN_MS } from '../run-pauses.js';
import { ServiceError } from './service-error.js';

/** The operations of the service (interface 1.6). */
export type Operation = 'submit' | 'feed' | 'run';

const OPERATION_NAMES: Readonly<Record<Operation, string>> = {
  submit: 'the submission (POST /scans)',
  feed: 'the delivery feed (GET /scans)',
  run: 'the single run (GET /scans/{scanId})',
};

/** A response whose status is not a success. */
export interface Refusal {
  readonly operation: Operation;
  readonly status: number;
  readonly germanText?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** The service answered with a status that is not success (interface 7). A redirect is never followed. */
export class HttpStatusError extends ServiceError {
  declare readonly status: number;
  /** The operation that was refused. */
  readonly operation: Operation;

  /** @param retryForMs set if a run is unknown */
  constructor({ operation, ...answer }: Refusal, action: Failure['action'], meaning: string, retryForMs?: number) {
    const { status, germanText } = answer;
    const quoted = germanText === undefined ? '' : `; the service says: "${germanText}"`;
    const message = `${OPERATION_NAMES[operation]} returned ${status}: ${meaning}${quoted}`;
    super(isRedirect(status) ? 'redirect' : `http_${status}`, action, message, { ...answer, retryForMs });
    this.operation = operation;
  }
}

const INVALID_REQUEST: Readonly<Record<Operation, string>> = {
  submit:
    'the submission is invalid; check the environment, the document type, that the file is a PDF and not too large, and whether an Idempotency-Key is mandatory',
  feed: 'the request is invalid; check the cursor and the filters',
  run: 'the request is invalid; check the scan id',
};
const NO_RUN =
  'there is no run with this scan id; check that the id is right, that the base URL ends in /v1, and that the key belongs to the organization that submitted the run; a run that was just submitted may be unknown for up to two minutes';
const NO_DOCUMENT_TYPE = 'the document type was not found; check its slug and that the base URL is right';
const REDIRECTED =
  'a redirect, which is never followed because it could send the key to another server; check the base URL';
const NO_SCHEMA =
  'a status that the interface does not define; the document type may have no ready schema in this environment (interface 4.1); otherwise check the base URL and any proxy in between';
const UNEXPECTED = 'a status that the interface does not define; check the base URL and any proxy in between';

/** Returns the error for a status, with its action (interface 7). */
export function httpStatusError(of: Refusal): HttpStatusError {
  const { status, operation } = of;
  const isSubmission = operation === 'submit';
  if (isRedirect(status)) return new HttpStatusError(of, 'hold', REDIRECTED);
  if (status === 400) return new HttpStatusError(of, isSubmission ? 'reject' : 'hold', INVALID_REQUEST[operation]);
  if (status === 401) return new HttpStatusError(of, 'hold', 'the API key is missing or invalid; check the key');
  if (status === 403) {
    return new HttpStatusError(of, 'hold', 'the API key belongs to no organization; ask the operators of the service');
  }
  // A run exists once its submission is answered (interface 3), so its id is wrong, unless the service is slow to find it.
  if (status === 404 && operation === 'run') return new HttpStatusError(of, 'reject', NO_RUN, UNKNOWN_RUN_MS);
  if (status === 404) return new HttpStatusError(of, isSubmission ? 'reject' : 'hold', NO_DOCUMENT_TYPE);
  if (status === 409 && isSubmission) {
    return new HttpStatusError(of, 'reject', 'the Idempotency-Key was already used with a different request');
  }
  if (status === 429) return new HttpStatusError(of, 'retry', 'too many requests; try again later');
  if (status >= 500 && status < 600) {
    return new HttpStatusError(of, 'retry', 'the service has an internal problem; try again later');
  }
  if (isSubmission && (status === 413 || status === 415))
    return new HttpStatusError(of, 'reject', INVALID_REQUEST.submit);
  const meaning = isSubmission && status >= 400 && status < 500 ? NO_SCHEMA : UNEXPECTED;
  return new HttpStatusError(of, status === 408 || status === 425 ? 'retry' : 'hold', meaning);
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}
