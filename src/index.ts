/** The library: a typed client of the Document Recognition Service. */
export type { ApiKeySource } from './service/api-key.js';
export {
  type FeedQuery,
  RecognitionClient,
  type RecognitionClientOptions,
  type SubmitResult,
} from './service/client.js';
export type { RequestClock } from './service/deadline.js';
export { createDispatcher, type DispatcherOptions, type ProxySettings } from './service/dispatcher.js';
export {
  ApiKeyError,
  AuthenticationError,
  BadHttpError,
  BodyTooLargeError,
  CertificateError,
  ClientClosedError,
  ConflictError,
  ConnectionError,
  CutBodyError,
  ForbiddenError,
  HttpStatusError,
  InvalidArgumentError,
  InvalidRequestError,
  NotFoundError,
  NotJsonError,
  type Operation,
  RateLimitedError,
  RedirectError,
  ServerError,
  ServiceError,
  TimeoutError,
  UnexpectedStatusError,
  WrongShapeError,
} from './service/errors.js';
export type { RequestObservation } from './service/http.js';
export type { SubmitRequest } from './service/requests.js';
export {
  type FeedEntry,
  type FeedPage,
  feedEntrySchema,
  feedPageSchema,
  type Run,
  runSchema,
  type Submission,
  submissionSchema,
} from './service/wire.js';
export type { FeedFilters, FeedRequest, FeedStart, RawPage, RawRun } from './sync/ports.js';
