/** The library: a typed client of the Document Recognition Service, and an async iterator over its feed. */

export type { Clock } from './core/clock.js';
export type { Failure } from './core/errors.js';
export type { FeedFilters } from './core/feed-filters.js';
export type {
  CompletedEntry,
  CompletedRun,
  DocumentType,
  FailedEntry,
  FailedRun,
  FeedEntry,
  ProcessingRun,
  Run,
  RunFields,
  SingleRunFields,
  UnusableEntry,
} from './library/entry-types.js';
export {
  type FeedFailure,
  type FollowedPage,
  type FollowOptions,
  followFeed,
  type WaitedOut,
} from './library/follow-feed.js';
export { type FeedPage, type GetRunOptions, RecognitionClient } from './library/recognition-client.js';
export type { SortedEntries } from './library/sort-entries.js';
export type { ApiKeySource } from './service/api-key.js';
export type { Cancellable, ServiceClientOptions as RecognitionClientOptions, SubmitResult } from './service/client.js';
export { InvalidArgumentError, ServiceError } from './service/errors/service-error.js';
export { HttpStatusError, type Operation } from './service/errors/status-errors.js';
export type { FeedQuery } from './service/feed-query.js';
export { createDispatcher, type DispatcherOptions, type ProxySettings } from './service/http/dispatcher.js';
export type { RequestObservation } from './service/http/exchange.js';
export type { SubmitRequest } from './service/requests.js';
export type { RunStatus, Submission } from './service/wire.js';
export type { BodyBounds, FeedRequest, FeedStart, RawPage, RawRun } from './sync/ports/service.js';
