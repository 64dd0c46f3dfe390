import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../core/clock.js';
import type { ReadSettings } from '../context.js';
import type { FeedService, Position } from '../ports/index.js';
import { type DeadEnd, findProgress, isDeadEnd, isEndOfFeed, type Progress, pageLimitAt } from './end-of-feed.js';
import { createPageLimit, isTooMuch, LARGEST_PAGE_BYTES, type PageLimit } from './page-limit.js';
import { type AnsweredPage, requestPage } from './read-page.js';
import { createRecentCursors } from './recent-cursors.js';

/** What is needed to read the feed without storing it. */
export interface WalkContext {
  readonly service: Pick<FeedService, 'readPage'>;
  readonly read: ReadSettings;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
}

/** A page, and where it leads. */
export interface Step {
  readonly page: AnsweredPage;
  readonly progress: Progress;
  /** The page before led nowhere; this one leads nowhere either, and lists the same entries. */
  readonly isRepeated: boolean;
}

/**
 * Reads the feed from a position without storing it. Each call of the returned function requests the next page, or the same
 * one again if it led nowhere or the call before failed. Pages are judged as those that the engine stores; an entry is new if
 * the page before, which led nowhere, did not list it.
 */
export function walkFeed(start: Position, context: WalkContext, signal: AbortSignal): () => Promise<Step> {
  const { service, read } = context;
  const pageLimit = createPageLimit(read.pageLimit, LARGEST_PAGE_BYTES);
  const recent = createRecentCursors();
  let at = start;
  let items: readonly unknown[] | null = null;
  let before: DeadEnd | null = null;
  return async () => {
    const page = await requestFitting(at, pageLimitAt(at, before, pageLimit), context, signal);
    const isRepeated = isDeadEnd(page) && items !== null && isDeepStrictEqual(page.raw.items, items);
    const verdict = await isEndOfFeed(page, read.filters, service, signal);
    const brought = { verdict, before, bringsNew: !isRepeated, recent };
    const { progress, deadEnd } = await findProgress(page, brought, read.filters, service, signal);
    items = isDeadEnd(page) ? page.raw.items : null;
    before = deadEnd;
    at = { ...at, cursor: page.next ?? at.cursor };
    return { page, progress, isRepeated };
  };
}

/** Requests fewer entries while the answer is more than the client accepts. */
async function requestFitting(
  at: Position,
  limit: PageLimit,
  { service, read, clock }: WalkContext,
  signal: AbortSignal,
): Promise<AnsweredPage> {
  for (;;) {
    const asked = limit.entries;
    try {
      return await requestPage(service, { ...read, pageLimit: asked }, clock, at, signal);
    } catch (error) {
      if (!isTooMuch(error) || asked === 1) throw error;
      limit.tooLarge(asked, error);
    }
  }
}
