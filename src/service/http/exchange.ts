import type { Dispatcher, FormData } from 'undici';
import type { Clock } from '../../core/clock.js';
import type { AnsweringCache } from '../../sync/ports/index.js';
import { type ApiKeySource, currentApiKey } from '../api-key.js';
import { connectionError, isKeepAliveReset, timeoutError } from '../errors/connection-errors.js';
import { ServiceError } from '../errors/service-error.js';
import { HttpStatusError, httpStatusError, type Operation } from '../errors/status-errors.js';
import { errorTextOf } from '../wire.js';
import { type ResponseAge, readResponseAge } from './answering-cache.js';
import { type BodyOptions, header, type JsonBody, readJson } from './body.js';
import { type OutsideDeadline, withDeadline } from './deadline.js';
import { parseDateHeader, parseRetryAfter } from './http-date.js';

/** Outcome of one HTTP request. */
export interface RequestObservation {
  /** The operation of the service. */
  readonly operation: Operation;
  /** The HTTP status, or the kind of the error if there was no response; `aborted` if the caller cancelled the request. */
  readonly status: number | string;
  /** Time from the call to the end of the response, milliseconds. */
  readonly durationMs: number;
  /** The cache that gave the response, if it shows one; null otherwise. */
  readonly cache: AnsweringCache | null;
}

export interface HttpOptions {
  /** URL of the service, with the version prefix. The key is sent nowhere else. */
  readonly base: URL;
  readonly apiKey: ApiKeySource;
  readonly requestTimeoutMs: number;
  readonly dispatcher: Dispatcher;
  readonly userAgent: string;
  readonly onRequest: ((observation: RequestObservation) => void) | undefined;
  readonly clock: Clock;
  /** Aborts when the client is closed, which cancels all requests. */
  readonly closed: AbortSignal;
}

export interface HttpRequest {
  readonly operation: Operation;
  /** Path and query below the base URL, encoded: `/scans?limit=1`. */
  readonly path: string;
  /** Body of a POST. Without it the request is a GET. */
  readonly form?: FormData;
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum size of the decompressed body, and the values to skip in it. */
  readonly body: BodyOptions;
  /** Values to remove from the service's error message. */
  readonly secrets?: readonly string[];
}

export interface HttpAnswer extends JsonBody, ResponseAge {
  readonly status: number;
  readonly serviceDate: Date | null;
}

type Response = Dispatcher.ResponseData;

/**
 * Sends one request and parses the JSON of its response, within one timeout. Redirects are not followed. Requests are not
 * retried, except once for a GET on a kept-alive connection that the service was closing.
 * @throws ServiceError, or the reason of `signal`
 */
export async function exchange(request: HttpRequest, options: HttpOptions, signal: AbortSignal): Promise<HttpAnswer> {
  const { requestTimeoutMs, clock, closed, onRequest } = options;
  const started = clock.monotonic();
  let status: number | string = 'aborted';
  let cache: AnsweringCache | null = null;
  try {
    const answer = await withDeadline(
      (stop, outside) => perform(reservingOutside(request, outside), options, stop),
      requestTimeoutMs,
      () => timeoutError(requestTimeoutMs),
      [closed, signal],
      clock,
    );
    ({ status, cache } = answer);
    return answer;
  } catch (error) {
    if (error instanceof ServiceError) status = error instanceof HttpStatusError ? error.status : error.kind;
    throw error;
  } finally {
    onRequest?.({ operation: request.operation, status, durationMs: clock.monotonic() - started, cache });
  }
}

/** The timeout does not include waiting for memory, during which nothing is read. */
function reservingOutside(request: HttpRequest, outside: OutsideDeadline): HttpRequest {
  const { reserve } = request.body;
  if (reserve === undefined) return request;
  return { ...request, body: { ...request.body, reserve: (bytes) => outside(reserve(bytes)) } };
}

async function perform(request: HttpRequest, options: HttpOptions, stop: AbortSignal): Promise<HttpAnswer> {
  const key = await currentApiKey(options.apiKey);
  let response: Response | undefined;
  try {
    response = await send(request, key, options, stop);
    const { statusCode: status } = response;
    // A 204 is read like a success, and then fails because it has no JSON.
    const isSuccess = status === 200 || status === 204 || (status === 202 && request.operation === 'submit');
    if (!isSuccess) throw await refusal(response, request, key, options);
    const json = await readJson(response, request.body, stop);
    const serviceDate = parseDateHeader(header(response, 'date'));
    return { ...json, status, serviceDate, ...readResponseAge(response) };
  } catch (error) {
    throw connectionError(error, options.base.origin, response?.statusCode);
  }
}

async function send(request: HttpRequest, key: string, options: HttpOptions, signal: AbortSignal): Promise<Response> {
  const { base, dispatcher, userAgent } = options;
  const dispatch = () =>
    dispatcher.request({
      origin: base.origin,
      path: base.pathname.replace(/\/+$/, '') + request.path,
      method: request.form === undefined ? 'GET' : 'POST',
      body: request.form ?? null,
      headers: {
        ...request.headers,
        accept: 'application/json',
        'accept-encoding': 'identity', // the maximum size applies to decompressed bytes
        'cache-control': 'no-cache', // some caches share responses in spite of the key
        authorization: `Bearer ${key}`,
        'user-agent': userAgent,
      },
      ...{ headersTimeout: 0, bodyTimeout: 0 }, // the signal has the timeout
      signal,
    });
  try {
    return await dispatch();
  } catch (error) {
    if (request.form !== undefined || signal.aborted || !isKeepAliveReset(error)) throw error;
    return await dispatch();
  }
}

async function refusal(
  response: Response,
  { operation, secrets = [] }: HttpRequest,
  key: string,
  { clock }: HttpOptions,
): Promise<HttpStatusError> {
  const date = parseDateHeader(header(response, 'date'));
  return httpStatusError({
    operation,
    status: response.statusCode,
    retryAfterMs: parseRetryAfter(header(response, 'retry-after'), date, clock.now()),
    germanText: await readGermanText(response, [key, ...secrets]),
  });
}

/** Maximum size of an error body that is read, bytes. */
const MAX_ERROR_BYTES = 65_536;
const MAX_CHARACTERS = 300;

/**
 * Reads the message of an error body (interface 2.5), as one printable line of at most 300 characters.
 * The body is always read to its end or discarded, so that its connection is free again.
 * @param secrets values to redact in the message
 * @returns undefined if the body does not match the interface
 */
async function readGermanText(response: Response, secrets: readonly string[]): Promise<string | undefined> {
  const json = await readJson(response, { maxBytes: MAX_ERROR_BYTES }).catch(() => undefined); // the status is enough
  const given = errorTextOf(json?.value);
  if (given === null) return undefined;
  const text = secrets.reduce((redacted, secret) => redacted.replaceAll(secret, '[redacted]'), given);
  return oneLine(text) || undefined;
}

function oneLine(text: string): string {
  const characters = [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()];
  return characters.length > MAX_CHARACTERS
    ? `${characters.slice(0, MAX_CHARACTERS - 1).join('')}…`
    : characters.join('');
}
