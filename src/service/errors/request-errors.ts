import { ServiceError } from './service-error.js';

/** The whole request took longer than allowed; waiting for a connection counts. */
export class TimeoutError extends ServiceError {
  readonly kind = 'timeout';
  readonly action = 'retry';
  constructor(timeoutMs: number) {
    super(`no complete answer within ${timeoutMs} ms; try again, or allow more time with SCANFEED_REQUEST_TIMEOUT`);
  }
}

/** No answer: the connection could not be made, or broke before one came. */
export class ConnectionError extends ServiceError {
  readonly kind = 'connection';
  readonly action = 'retry';
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
  readonly action = 'hold';
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
  readonly action = 'retry';
  constructor(readonly code: string) {
    super(`the answer is not valid HTTP (${code}); check the base URL and what stands between`);
  }
}

/** The API key could not be had, or holds characters a header cannot. It is never shown. */
export class ApiKeyError extends ServiceError {
  readonly kind = 'api_key';
  readonly action = 'hold';
}

/** A request that would be wrong was not sent. Messages name the argument, not its value. */
export class InvalidArgumentError extends ServiceError {
  readonly kind = 'invalid_argument';
  readonly action = 'data';
}

/** The client was closed before or while the request ran. */
export class ClientClosedError extends ServiceError {
  readonly kind = 'closed';
  readonly action = 'hold';
  constructor() {
    super('the client is closed');
  }
}
