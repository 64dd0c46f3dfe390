import {
  BodyTooLargeError,
  CutBodyError,
  NotJsonError,
  WrongShapeError,
} from '../../src/service/errors/body-errors.js';
import {
  BadHttpError,
  CertificateError,
  ConnectionError,
  TimeoutError,
} from '../../src/service/errors/request-errors.js';
import type { ServiceError } from '../../src/service/errors/service-error.js';
import { httpStatusError, type Operation } from '../../src/service/errors/status-errors.js';
import type { Choices } from './random-choices.js';

const STATUSES = [302, 400, 401, 403, 404, 408, 418, 425, 429, 500, 502, 503] as const;

const OTHERS: readonly ServiceError[] = [
  new NotJsonError(200, 'text/html', { size: 12, sha256Prefix: 'abc' }),
  new WrongShapeError(200, 'the page', ['items']),
  new BodyTooLargeError(1),
  new CutBodyError(200, 'cut'),
  new ConnectionError('https://service.test', 'ECONNRESET'),
  new CertificateError('https://service.test', 'CERT_HAS_EXPIRED'),
  new BadHttpError('HPE_INVALID_CONSTANT'),
];

/** The client's timeout of one request, milliseconds. */
export const REQUEST_TIMEOUT_MS = 30_000;

/** Returns a random failure of a request, as the client reports it. */
export function requestFailure(operation: Operation, choices: Choices): ServiceError {
  if (choices.chance(0.5)) return choices.pick(OTHERS);
  const status = choices.pick(STATUSES);
  return refusal(operation, status, status === 429 || status === 503 ? choices.pick([undefined, 5_000]) : undefined);
}

const refusals = new Map<string, ServiceError>();

/** Returns the error of an answer. Reuses errors, since millions are thrown. */
export function refusal(operation: Operation, status: number, retryAfterMs?: number): ServiceError {
  const key = `${operation} ${status} ${retryAfterMs}`;
  const known = refusals.get(key) ?? httpStatusError({ operation, status, retryAfterMs });
  refusals.set(key, known);
  return known;
}

/** Statuses with which a service may reject a cursor; for other cursors it resets the connection. */
const REJECTIONS: readonly number[] = [400, 404, 410, 414, 422, 431];
const RESET = new ConnectionError('https://service.test', 'ECONNRESET');

/** Returns how the service rejects a cursor, always the same for the same cursor. */
export function rejection(cursor: string): ServiceError {
  const sum = Buffer.from(cursor).reduce((total, byte) => total + byte, 0);
  const status = REJECTIONS[sum % (REJECTIONS.length + 1)];
  return status === undefined ? RESET : refusal('feed', status);
}

/** Returns whether a failure may mean a rejected cursor. */
export function maybeRejection(error: unknown): boolean {
  const { status, code } = error as { readonly status?: number; readonly code?: string };
  return code === 'ECONNRESET' || (status !== undefined && REJECTIONS.includes(status));
}

export function timeout(): ServiceError {
  return new TimeoutError(REQUEST_TIMEOUT_MS);
}
