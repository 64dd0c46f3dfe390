/** The library: a typed client of the Document Recognition Service, and its feed as an async iterator. */
export {
  type FeedFailure,
  type FollowedPage,
  type FollowOptions,
  followFeed,
  type WaitedOut,
} from './library/follow-feed.js';
export type { UnusableEntry } from './library/sort-entries.js';
export type { ApiKeySource } from './service/api-key.js';
export {
  BodyTooLargeError,
  CutBodyError,
  NotJsonError,
  TooManyEntriesError,
  TooManyValuesError,
  WrongShapeError,
} from './service/body-errors.js';
export {
  RecognitionClient,
  type RecognitionClientOptions,
  type SubmitResult,
} from './service/client.js';
export type { RequestClock } from './service/deadline.js';
export { createDispatcher, type DispatcherOptions, type ProxySettings } from './service/dispatcher.js';
export type { FeedQuery } from './service/feed-query.js';
export type { RequestObservation } from './service/http.js';
export {
  ApiKeyError,
  BadHttpError,
  CertificateError,
  ClientClosedError,
  ConnectionError,
  InvalidArgumentError,
  TimeoutError,
} from './service/request-errors.js';
export type { SubmitRequest } from './service/requests.js';
export { ServiceError } from './service/service-error.js';
export {
  AuthenticationError,
  ConflictError,
  ForbiddenError,
  HttpStatusError,
  InvalidRequestError,
  NotFoundError,
  type Operation,
  RateLimitedError,
  RedirectError,
  ServerError,
  UnexpectedStatusError,
} from './service/status-errors.js';
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
export type { Clock, Failure, FeedFilters, FeedRequest, FeedStart, RawPage, RawRun } from './sync/ports.js';
