import { createHash } from 'node:crypto';
import { ServiceError } from './service-error.js';

/**
 * Returns the error for a response that is not JSON: another content type, HTML, 204, or an empty body. The message has its size and
 * hash, never its content.
 */
export function notJsonError(status: number, reason: string, body: Uint8Array): ServiceError {
  const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
  const message = `the service returned ${status} with a response that is not JSON: ${reason} (${body.length} bytes, sha256 ${hash}…); check the base URL and any proxy in between`;
  return new ServiceError('not_json', 'hold', message, { status });
}

/**
 * Returns the error for JSON that does not match the interface. The message has places and fields, never values.
 * @param place the part that does not match: `the page`, `entry 3 of the page`, …
 * @param fields the fields that do not match, or what is wrong with one
 */
export function wrongShapeError(status: number, place: string, fields: readonly string[]): ServiceError {
  const message = `the service returned ${status}, but ${place} does not match the interface: ${fields.join(', ')}; ask its operators what changed, or use a newer release of scanfeed`;
  return new ServiceError('wrong_shape', 'hold', message, { status });
}

/**
 * Returns the error for a decompressed body that exceeds the maximum size. It is discarded.
 * @param maxBytes undefined if the maximum is that of the client's dispatcher
 */
export function bodyTooLargeError(maxBytes: number | undefined): ServiceError {
  const allowed = maxBytes === undefined ? 'allowed' : `the ${maxBytes} bytes allowed`;
  const message = `the response is larger than ${allowed}; if it is a page of the feed, lower the page limit`;
  return new ServiceError('too_large', 'hold', message);
}

/** Returns the error for a body that ended early, or whose compression or framing is broken. */
export function cutBodyError(status: number, reason: string): ServiceError {
  const message = `the response was truncated or damaged in transit (${reason}); try again`;
  return new ServiceError('cut_body', 'retry', message, { status });
}
