import { type FeedFilters, FILTER_NAMES, UNFILTERED } from '../core/feed-filters.js';
import type { FeedRequest, FeedStart } from '../sync/ports/index.js';
import { requireArgument } from './check-arguments.js';

/** Filters of a query without filters. Both states are listed, unlike the service's own default. */
const DEFAULTS: FeedFilters = { ...UNFILTERED, environment: 'prod' };

type FilterOptions = { readonly [Name in keyof FeedFilters]?: FeedFilters[Name] | undefined };

/** What to read from the feed (interface 4.2): by default both statuses, `prod` and every type. Defaults are always sent explicitly. */
export interface FeedQuery extends FilterOptions {
  /** Where to continue: the `cursor` of the previous page; null if there is none. Excludes `since`. */
  readonly cursor?: string | null | undefined;
  /**
   * Delivery time to start from: a date, a text in ISO 8601, or milliseconds since 1970. Without `cursor` and `since` the feed
   * starts at the beginning of the history.
   */
  readonly since?: Date | string | number | null | undefined;
  /** Maximum number of entries, 1 to 200. Default 50. */
  readonly limit?: number | undefined;
  /** Whether to include the recognized markdown. Default false. */
  readonly markdown?: boolean | undefined;
}

/** Returns the request for a page, with defaults. @throws InvalidArgumentError */
export function feedRequestOf(query: FeedQuery): FeedRequest {
  const { limit = 50, markdown = false } = query;
  return { filters: filtersOf(query), start: startOf(query), limit, markdown };
}

/** Returns the filters of a query, with defaults. */
export function filtersOf(query: FeedQuery): FeedFilters {
  const given = FILTER_NAMES.filter((name) => query[name] !== undefined).map((name) => [name, query[name]] as const);
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}

function startOf({ cursor, since }: FeedQuery): FeedStart {
  requireArgument(cursor == null || since == null, 'cursor and since cannot be combined');
  if (cursor != null) return { cursor };
  return since == null ? { beginning: true } : { since: dateOf(since) };
}

/** @throws InvalidArgumentError */
export function dateOf(since: Date | string | number): Date {
  const date = new Date(since);
  const isValid = !Number.isNaN(date.getTime());
  requireArgument(isValid, 'since must be a valid date, a time in ISO 8601, or milliseconds since 1970');
  return date;
}
