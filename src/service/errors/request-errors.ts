import { ServiceError } from './service-error.js';

/** The request took longer than allowed, including the time it waited for a connection. */
export class TimeoutError extends ServiceError {
  readonly kind = 'timeout';
  readonly action = 'retry';
  constructor(timeoutMs: number) {
    super(`no complete response within ${timeoutMs} ms; try again, or raise the request timeout`);
  }
}

/** Codes of Node for a host name without an address. */
const UNKNOWN_HOST = /^(ENOTFOUND|EAI_|ENODATA|ESERVFAIL)/;

/** No response: the connection failed, or was lost before the response. */
export class ConnectionError extends ServiceError {
  readonly kind = 'connection';
  readonly action = 'retry';
  constructor(
    origin: string,
    /** Code of Node, OpenSSL or undici, such as `ECONNREFUSED`. */
    readonly code: string,
    /** The deadline if there was no connection in time, milliseconds. */
    timeoutMs?: number,
  ) {
    const reason = timeoutMs === undefined ? code : `${code} after ${timeoutMs / 1000} s`;
    const remedy = UNKNOWN_HOST.test(code)
      ? 'check the host names of the URL and of the proxy, and DNS'
      : 'check the URL, the network and the proxy';
    super(`no response from ${origin} (${reason}); ${remedy}`);
  }
}

/** The proxy answered a CONNECT with a status other than 200. The key was not sent. */
export class ProxyError extends ServiceError {
  readonly kind = 'proxy';
  readonly action: ServiceError['action'];
  constructor(
    /** `host:port` of the proxy. */
    proxy: string,
    /** The status of the proxy's answer; that of the service is in `status`. */
    readonly proxyStatus: number,
  ) {
    const remedy =
      proxyStatus === 407 ? 'check user and password in HTTPS_PROXY' : 'check its log and rules, or NO_PROXY';
    super(`the proxy ${proxy} refused to connect to the service: it answered ${proxyStatus}; ${remedy}`);
    this.action = proxyStatus === 429 || proxyStatus >= 500 ? 'retry' : 'hold';
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
