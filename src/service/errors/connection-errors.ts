import { errors } from 'undici';
import { bodyTooLargeError, cutBodyError } from './body-errors.js';
import { ServiceError } from './service-error.js';

const NOT_HTTP = 'HTTP_PARSER';
const CLOSED = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED']);
const RESETS = new Set(['ECONNRESET', 'EPIPE']);
const CERTIFICATES =
  /^(CERT_|UNABLE_TO_|ERR_TLS_CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|HOSTNAME_MISMATCH$|INVALID_CA$|UND_ERR_PRX_TLS$)/;
/** Codes of Node for a host name without an address. */
const UNKNOWN_HOST = /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/;

/**
 * Classifies an error of undici, Node or OpenSSL by its code. Its text and objects are dropped, since they may contain URLs
 * and headers.
 * @param status set if the header of the response was received, so that only its body failed
 */
export function connectionError(error: unknown, origin: string, status?: number): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = codeOf(error);
  if (CLOSED.has(code)) return clientClosedError();
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return bodyTooLargeError(undefined);
  if (status !== undefined) return cutBodyError(status, code);
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === NOT_HTTP) {
    const message = `the response is not valid HTTP (${code}); check the base URL and any proxy in between`;
    return new ServiceError('bad_http', 'retry', message, { code });
  }
  if (CERTIFICATES.test(code)) {
    const message = `the certificate of ${origin} is not trusted (${code}); check its issuer, name and dates, or NODE_EXTRA_CA_CERTS`;
    return new ServiceError('certificate', 'hold', message, { code });
  }
  return noResponseError(origin, code);
}

/**
 * Returns the error for a connection that failed, or was lost before the response.
 * @param timeoutMs the deadline if there was no connection in time, milliseconds
 */
export function noResponseError(origin: string, code: string, timeoutMs?: number): ServiceError {
  const reason = timeoutMs === undefined ? code : `${code} after ${timeoutMs / 1000} s`;
  const remedy = UNKNOWN_HOST.test(code)
    ? 'check the host names of the URL and of the proxy, and DNS'
    : 'check the URL, the network and the proxy';
  return new ServiceError('connection', 'retry', `no response from ${origin} (${reason}); ${remedy}`, { code });
}

/** Returns the error for a request that took longer than allowed, including the time it waited for a connection. */
export function timeoutError(timeoutMs: number): ServiceError {
  const message = `no complete response within ${timeoutMs} ms; try again, or raise the request timeout`;
  return new ServiceError('timeout', 'retry', message);
}

/** Returns the error for a request whose client was closed before or during it. */
export function clientClosedError(): ServiceError {
  return new ServiceError('closed', 'hold', 'the client is closed');
}

/**
 * Returns whether the service may have closed a kept-alive connection just as it was used again, before any byte of the
 * response. A socket error of undici shows whether the connection had been used before; a reset does not.
 */
export function isKeepAliveReset(error: unknown): boolean {
  const code = codeOf(error);
  if (RESETS.has(code)) return true;
  const bytesRead = (error as { socket?: { bytesRead?: unknown } | null } | null)?.socket?.bytesRead;
  return code === 'UND_ERR_SOCKET' && typeof bytesRead === 'number' && bytesRead > 0;
}

function codeOf(error: unknown): string {
  if (error instanceof errors.HTTPParserError) return NOT_HTTP; // it has no code, and contains the data
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : 'unknown';
}
