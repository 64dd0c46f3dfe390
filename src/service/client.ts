import { constants } from 'node:buffer';
import type { Dispatcher } from 'undici';
import { type Clock, systemClock } from '../core/clock.js';
import { MAX_RUNS } from '../core/json/field-places.js';
import type { SkippableValues } from '../core/json/skip-large-values.js';
import type { BodyBounds, FeedRequest, FeedService, RawPage, RawRun } from '../sync/ports/index.js';
import { type ApiKeySource, isApiKey } from './api-key.js';
import { parseBaseUrl } from './base-url.js';
import { atLeastOne, requireArgument, requireFunctions } from './check-arguments.js';
import { wrongShapeError } from './errors/body-errors.js';
import { clientClosedError } from './errors/connection-errors.js';
import { InvalidArgumentError, ServiceError } from './errors/service-error.js';
import type { BodyOptions } from './http/body.js';
import { createDispatcher } from './http/dispatcher.js';
import {
  exchange,
  type HttpAnswer,
  type HttpOptions,
  type HttpRequest,
  type RequestObservation,
} from './http/exchange.js';
import { feedPath, runPath, type SubmitRequest, submission } from './requests.js';
import { SKIPPABLE_IN_PAGE, SKIPPABLE_IN_RUN } from './steering-fields.js';
import { jsonObject, readSubmission, type Submission } from './wire.js';

const MIB = 1024 * 1024;
/** Maximum size of the response to a submission, bytes. It has three fields. */
const SUBMISSION_BYTES = MIB;

/** How to reach the service. */
export interface ServiceClientOptions {
  /** URL of the service, with the version prefix: `https://recognition.example/v1`. No user, query or fragment. */
  readonly baseUrl: string | URL;
  /** Whether to send the key unencrypted (`http:`) to other machines, such as in a mesh that encrypts. Default false. */
  readonly allowHttp?: boolean | undefined;
  /** Bearer key, or a function that is called for it before every request. */
  readonly apiKey: ApiKeySource;
  /** Timeout of one request: waiting for a connection, sending, and reading to the end. Milliseconds, default 30,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** Maximum size of one response after decompression, bytes. Default 256 MiB. */
  readonly maxResponseBytes?: number | undefined;
  /** For proxies and certificates, see `createDispatcher`. The caller destroys it. Default: a dispatcher of the client's own. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Value of the header `User-Agent`. Default `scanfeed`. */
  readonly userAgent?: string | undefined;
  /** Called once at the end of each request, whatever its outcome. */
  readonly onRequest?: ((observation: RequestObservation) => void) | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** Options of a request that can be cancelled. */
export interface Cancellable {
  /** Cancels the request, which then rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The response to a submission (interface 2.4, 4.1). */
export interface SubmitResult extends Submission {
  /** True for a new run (202), false for the run of an earlier request with the same `idempotencyKey` (200). */
  readonly created: boolean;
}

/**
 * Client of the Document Recognition Service. Any number of requests can run concurrently. Every method rejects with a
 * `ServiceError`, or with the reason of the given signal. Requests are not retried, except once for a GET on a kept-alive
 * connection that the service was closing.
 */
export class ServiceClient implements FeedService {
  protected readonly clock: Clock;
  /** Aborts when the client is closed. */
  protected readonly closed: AbortSignal;
  readonly #http: HttpOptions;
  readonly #closed = new AbortController();
  readonly #ownDispatcher: Dispatcher | null;
  readonly #maxResponseBytes: number;

  /** @throws InvalidArgumentError */
  constructor(options: ServiceClientOptions) {
    const base = parseBaseUrl(options.baseUrl, { allowHttp: options.allowHttp ?? false });
    const { apiKey, userAgent = 'scanfeed', onRequest } = options;
    const isKey = typeof apiKey === 'function' || isApiKey(apiKey);
    requireArgument(isKey, 'apiKey must be a key of visible ASCII without spaces, or a function that returns it');
    requireArgument(/^[\x20-\x7e]+$/.test(userAgent), 'userAgent must be printable ASCII');
    const isOwn = options.dispatcher === undefined;
    const canRequest = isOwn || typeof options.dispatcher?.request === 'function';
    requireArgument(canRequest, 'dispatcher must be a dispatcher of undici, such as createDispatcher returns');
    requireFunctions({ onRequest });
    const requestTimeoutMs = atLeastOne(options.requestTimeoutMs ?? 30_000, 'requestTimeoutMs');
    // A response may become one string, which cannot be longer.
    this.#maxResponseBytes = atLeastOne(
      options.maxResponseBytes ?? 256 * MIB,
      'maxResponseBytes',
      constants.MAX_STRING_LENGTH,
    );
    const dispatcher = options.dispatcher ?? createDispatcher();
    this.#ownDispatcher = isOwn ? dispatcher : null;
    this.clock = options.clock ?? systemClock;
    this.closed = this.#closed.signal;
    this.#http = {
      base,
      apiKey,
      requestTimeoutMs,
      dispatcher,
      userAgent,
      onRequest,
      clock: this.clock,
      closed: this.closed,
    };
  }

  /** Submits one PDF (interface 4.1). Returns before it is recognized. Not retried; with an Idempotency-Key a retry is safe. */
  async submit(options: SubmitRequest & Cancellable, ...more: readonly never[]): Promise<SubmitResult> {
    requireOptions(options, more);
    const { signal, ...request } = options;
    const body = this.#bounded({ maxBytes: SUBMISSION_BYTES });
    const answer = await this.#exchange({ operation: 'submit', ...submission(request), body }, signal);
    return { ...readSubmission(answer), created: answer.status === 202 };
  }

  /**
   * Reads one page of the feed as received. Only its outer shape is checked (interface 2.3), so that one bad entry does not
   * hide the others. Long values in `items` are left empty; `body` has them.
   * @param request `maxBytes` lowers the client's limit for this page
   */
  async readPage(request: FeedRequest & Partial<BodyBounds> & Cancellable, signal = request.signal): Promise<RawPage> {
    requireOptions(request);
    const { body, facts, places, serviceDate, ageMs, cache, ...answer } = await this.#exchange(
      {
        operation: 'feed',
        path: feedPath(request),
        body: this.#bounded(request, SKIPPABLE_IN_PAGE),
        secrets: 'cursor' in request.start ? [request.start.cursor] : [],
      },
      signal,
    );
    const page = jsonObject(answer, 'the page');
    if (!Array.isArray(page.items)) throw wrongShapeError(answer.status, 'the page', ['items']);
    if (page.items.length > MAX_RUNS) throw tooManyEntries(answer.status, page.items.length, request.limit);
    return {
      body,
      items: page.items,
      facts,
      places,
      nextCursor: nextCursorOf(page.nextCursor),
      serviceDate,
      ageMs,
      cache,
    };
  }

  /** Reads a single run as received (interface 4.3). Checks only that it is an object. Long values as in `readPage`. */
  async readRun(
    scanId: string,
    options: { readonly markdown: boolean } & Partial<BodyBounds> & Cancellable,
    signal = options.signal,
  ): Promise<RawRun> {
    requireOptions(options);
    const { body, facts, places, ...answer } = await this.#exchange(
      {
        operation: 'run',
        path: runPath(scanId, options.markdown),
        body: this.#bounded(options, SKIPPABLE_IN_RUN),
      },
      signal,
    );
    return { body, facts, places, run: jsonObject(answer, 'the run') };
  }

  /** Cancels running requests and closes the client's own connections. */
  async close(): Promise<void> {
    this.#closed.abort(clientClosedError());
    await this.#ownDispatcher?.destroy();
  }

  #bounded(
    { maxBytes = this.#maxResponseBytes, ...bounds }: Partial<BodyBounds>,
    skippable?: SkippableValues,
  ): BodyOptions {
    return { ...bounds, maxBytes: Math.min(maxBytes, this.#maxResponseBytes), skippable };
  }

  #exchange(request: HttpRequest, signal: AbortSignal = new AbortController().signal): Promise<HttpAnswer> {
    return exchange(request, this.#http, signal);
  }
}

/** Returns the error for a page with far more entries than the interface allows. */
function tooManyEntries(status: number, entries: number, limit: number): ServiceError {
  const message = `the service returned ${status} with a page of ${entries} entries, though at most ${limit} were requested; none of them is stored; ask its operators to respect the page size (limit, interface 4.2)`;
  return new ServiceError('too_many_entries', 'hold', message, { status });
}

/** Returns the cursor of a page; null: none; empty: it is not a string, so it cannot be used. */
function nextCursorOf(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : '';
}

/** Programs in JavaScript could pass a signal where it would be ignored. @throws InvalidArgumentError */
export function requireOptions(options: object & Cancellable, more: readonly never[] = []): void {
  if (options instanceof AbortSignal || more.length > 0)
    throw new InvalidArgumentError('signal must be a property of the options, which are the last argument');
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
    throw new InvalidArgumentError('signal must be an AbortSignal');
}
