import {
  bodyTooLargeError,
  cutBodyError,
  notJsonError,
  wrongShapeError,
} from '../../src/service/errors/body-errors.js';
import { connectionError, noResponseError, timeoutError } from '../../src/service/errors/connection-errors.js';
import type { ServiceError } from '../../src/service/errors/service-error.js';
import { httpStatusError, type Operation } from '../../src/service/errors/status-errors.js';
import type { Choices } from './random-choices.js';

const STATUSES = [302, 400, 401, 403, 404, 408, 418, 425, 429, 500, 502, 503] as const;

const OTHERS: readonly ServiceError[] = [
  notJsonError(200, 'text/html', Buffer.alloc(12)),
  wrongShapeError(200, 'the page', ['items']),
  bodyTooLargeError(1),
  cutBodyError(200, 'cut'),
  noResponseError('https://service.test', 'ECONNRESET'),
  connectionError({ code: 'CERT_HAS_EXPIRED' }, 'https://service.test'),
  connectionError({ code: 'UND_ERR_HEADERS_OVERFLOW' }, 'https://service.test'),
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

/** Returns the error of a response. Reuses errors, since millions are thrown. */
export function refusal(operation: Operation, status: number, retryAfterMs?: number): ServiceError {
  const key = `${operation} ${status} ${retryAfterMs}`;
  const known = refusals.get(key) ?? httpStatusError({ operation, status, retryAfterMs });
  refusals.set(key, known);
  return known;
}

/** Statuses with which a service may reject a cursor; for other cursors it resets the connection. */
const REJECTIONS: readonly number[] = [400, 404, 410, 414, 422, 431];
const RESET = noResponseError('https://service.test', 'ECONNRESET');

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
  return timeoutError(REQUEST_TIMEOUT_MS);
}
