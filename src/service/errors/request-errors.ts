import { ServiceError } from './service-error.js';

/** The request took longer than allowed, including the time it waited for a connection. */
export class TimeoutError extends ServiceError {
  readonly kind = 'timeout';
  readonly action = 'retry';
  constructor(timeoutMs: number) {
    super(`no complete response within ${timeoutMs} ms; try again, or allow more time with SCANFEED_REQUEST_TIMEOUT`);
  }
}

/** No response: the connection failed, or was lost before the response. */
export class ConnectionError extends ServiceError {
  readonly kind = 'connection';
  readonly action = 'retry';
  constructor(
    origin: string,
    /** Code of Node, OpenSSL or undici, such as `ECONNREFUSED`. */
    readonly code: string,
  ) {
    super(`no response from ${origin} (${code}); check the URL, the network and the proxy`);
  }
}

/** The certificate of the service is not trusted. The key was not sent. */
export class CertificateError extends ServiceError {
  readonly kind = 'certificate';
  readonly action = 'hold';
  constructor(
    origin: string,
    /** Code of OpenSSL, such as `CERT_HAS_EXPIRED`. */
    readonly code: string,
  ) {
    super(
      `the certificate of ${origin} is not trusted (${code}); check its issuer, name and dates, or NODE_EXTRA_CA_CERTS`,
    );
  }
}

/** The response is not valid HTTP, or its header is too large. */
export class BadHttpError extends ServiceError {
  readonly kind = 'bad_http';
  readonly action = 'retry';
  constructor(
    /** Code of Node or undici. */
    readonly code: string,
  ) {
    super(`the response is not valid HTTP (${code}); check the base URL and any proxy in between`);
  }
}

/** The API key could not be read, or contains characters that a header cannot. It is never shown. */
export class ApiKeyError extends ServiceError {
  readonly kind = 'api_key';
  readonly action = 'hold';
}

/** An argument is invalid, so the request was not sent. The message names the argument, not its value. */
export class InvalidArgumentError extends ServiceError {
  readonly kind = 'invalid_argument';
  readonly action = 'data';
}

/** The client was closed before or during the request. */
export class ClientClosedError extends ServiceError {
  readonly kind = 'closed';
  readonly action = 'hold';
  constructor() {
    super('the client is closed');
  }
}
