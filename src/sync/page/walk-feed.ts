import { isDeepStrictEqual } from 'node:util';
import type { FeedFilters, Position } from '../ports/index.js';
import { createRecentCursors } from './cursors.js';
import { findEnding, firstLimitAt, isDeadEnd, nextAfter } from './end-of-feed.js';
import type { Next, PossibleEnd, ReceivedPage } from './page.js';
import { createPageLimit, LARGEST_PAGE_BYTES } from './page-limit.js';
import { type RequestContext, requestPage } from './read-page.js';

/** Dependencies and settings for reading the feed without storing it. */
export interface WalkContext extends RequestContext {
  readonly read: {
    readonly filters: FeedFilters;
    readonly markdown: boolean;
    /** Maximum number of entries of a page, 1 to 200. */
    readonly pageSize: number;
  };
}

/** A page, and what follows it. */
export interface Step {
  readonly page: ReceivedPage;
  readonly next: Exclude<Next, 'fenced'>;
  /** Whether this page and the previous one are dead ends with the same entries. */
  readonly isRepeated: boolean;
}

/**
 * Reads the feed from a position without storing it. Each call of the returned function requests the next page, or the same
 * one again if it was a dead end or the previous call failed. Pages are judged like those that the engine stores; entries are
 * new if the previous page, a dead end, did not have the same ones.
 */
export function walkFeed(start: Position, context: WalkContext, signal: AbortSignal): () => Promise<Step> {
  const { filters, markdown, pageSize } = context.read;
  const read = { filters, markdown, limit: createPageLimit(pageSize, LARGEST_PAGE_BYTES) };
  const recentCursors = createRecentCursors();
  let at = start;
  let items: readonly unknown[] | null = null;
  let previous: PossibleEnd | null = null;
  return async () => {
    const page = await requestPage(at, read, context, signal, firstLimitAt(at, previous));
    const isRepeated = isDeadEnd(page) && items !== null && isDeepStrictEqual(page.raw.items, items);
    const ending = await findEnding(page, previous, filters, context.service, signal);
    if (ending.failure !== undefined) throw ending.failure;
    const { claim, possibleEnd } = ending;
    const isEnd = claim === 'yes' || (claim === 'ifNothingNew' && isRepeated);
    const next = nextAfter(page, ending, isEnd, recentCursors);
    items = isDeadEnd(page) ? page.raw.items : null;
    previous = possibleEnd;
    at = { ...at, cursor: page.next ?? at.cursor };
    return { page, next, isRepeated };
  };
}
