import { errors } from 'undici';
import { BodyTooLargeError, CutBodyError } from './body-errors.js';
import { BadHttpError, CertificateError, ClientClosedError, ConnectionError, TimeoutError } from './request-errors.js';
import { ServiceError } from './service-error.js';

const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);
const NOT_HTTP = 'HTTP_PARSER';
const CLOSED = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED']);
const RESETS = new Set(['ECONNRESET', 'EPIPE']);
const CERTIFICATES =
  /^(CERT_|UNABLE_TO_|ERR_TLS_CERT_|CRL_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|HOSTNAME_MISMATCH$|INVALID_CA$|UND_ERR_PRX_TLS$)/;

/**
 * Classifies an error of undici, Node or OpenSSL by its code. Its text and objects are dropped, since they may contain URLs
 * and headers.
 * @param status set if the header of the response was received, so that only its body failed
 */
export function connectionError(error: unknown, origin: string, timeoutMs: number, status?: number): ServiceError {
  if (error instanceof ServiceError) return error;
  const code = codeOf(error);
  if (TIMEOUTS.has(code)) return new TimeoutError(timeoutMs);
  if (CLOSED.has(code)) return new ClientClosedError();
  if (code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') return new BodyTooLargeError(undefined);
  if (status !== undefined) return new CutBodyError(status, code);
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || code === NOT_HTTP) return new BadHttpError(code);
  if (CERTIFICATES.test(code)) return new CertificateError(origin, code);
  return new ConnectionError(origin, code);
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
