import type { FeedFilters, FeedRequest, FeedStart } from '../sync/ports/index.js';
import { InvalidArgumentError } from './errors/request-errors.js';

/** What to read from the feed (interface 4.2). What is left out has the default named here, and is sent all the same. */
export interface FeedQuery {
  /** Where to go on: `nextCursor` of the page before. Excludes `since`. */
  readonly cursor?: string | undefined;
  /** Where to start in time. With neither, the feed starts at the beginning of the history. */
  readonly since?: Date | undefined;
  /** Default: both, unlike the service's own default. */
  readonly status?: readonly ('completed' | 'failed')[] | undefined;
  /** Default `prod`. */
  readonly environment?: 'prod' | 'test' | 'all' | undefined;
  /** A slug. Default: every type. */
  readonly documentType?: string | undefined;
  /** Entries at most, 1 to 200. Default 50. */
  readonly limit?: number | undefined;
  /** Attach the recognized markdown. Default false. */
  readonly markdown?: boolean | undefined;
}

/** The request for a page, with what the query leaves out. @throws InvalidArgumentError */
export function feedRequestOf(query: FeedQuery): FeedRequest {
  const { limit = 50, markdown = false } = query;
  return { filters: filtersOf(query), start: startOf(query), limit, markdown };
}

/** The filters of a query, with what it leaves out. */
export function filtersOf(query: Pick<FeedQuery, keyof FeedFilters>): FeedFilters {
  const { status = ['completed', 'failed'], environment = 'prod', documentType = null } = query;
  return { status, environment, documentType };
}

function startOf({ cursor, since }: FeedQuery): FeedStart {
  if (cursor !== undefined && since !== undefined)
    throw new InvalidArgumentError('cursor and since exclude each other');
  if (cursor !== undefined) return { cursor };
  return since === undefined ? { beginning: true } : { since };
}
