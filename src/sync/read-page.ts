import { draftPage, type PageDraft } from './page-draft.js';
import type { Clock, FeedFilters, FeedRequest, FeedService, FeedStart, Freshness, Position } from './ports.js';
import { instantOf, isBelievable } from './service-clock.js';
import { isStorable } from './storable-text.js';

/** How a feed is read. */
export interface ReadSettings {
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  /** 1 to 200. */
  readonly pageLimit: number;
}

/** One page as fetched, its entries checked. */
export interface FetchedPage {
  readonly at: Position;
  /** The service's `nextCursor`; null where it sent none. */
  readonly next: string | null;
  readonly draft: PageDraft;
  readonly limit: number;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time of a delivery time of the service. Never after the poll. */
  instantOf(deliveredAt: Date): number;
  /** The delivery time of the last entry that has a believable one. */
  readonly lastDeliveredAt: Date | null;
}

export async function readPage(
  service: FeedService,
  settings: ReadSettings,
  clock: Clock,
  at: Position,
  signal: AbortSignal,
): Promise<FetchedPage> {
  const polledAt = clock.monotonic();
  const page = await service.readPage(requestAt(at, settings), signal);
  const { serviceDate } = page;
  const times = { polledAt, receivedAt: clock.monotonic(), wallClock: clock.now(), serviceDate };
  const draft = draftPage(page);
  const deliveries = draft.entries.map((entry) => entry.accepted.run.deliveredAt);
  return {
    at,
    // One that PostgreSQL cannot hold is as good as none.
    next: page.nextCursor !== null && isStorable(page.nextCursor) ? page.nextCursor : null,
    draft,
    lastDeliveredAt: deliveries.findLast((time) => time !== null && isBelievable(time, times)) ?? null,
    limit: settings.pageLimit,
    polledAt,
    instantOf: (deliveredAt) => instantOf(deliveredAt, times),
  };
}

/** A feed without a cursor goes on from where it was first started, always. */
export function startAt({ cursor, since }: Position): FeedStart {
  if (cursor !== null) return { cursor };
  return since !== null ? { since } : { beginning: true };
}

function requestAt(at: Position, { filters, markdown, pageLimit }: ReadSettings): FeedRequest {
  return { filters, markdown, limit: pageLimit, start: startAt(at) };
}

/**
 * What a commit of this page may say about freshness. Up to just before its last delivery: the next page may begin with an
 * entry of the very same time.
 */
export function freshnessOf(page: FetchedPage, atEnd: boolean): Freshness {
  const { lastDeliveredAt } = page;
  return {
    atEnd,
    polledAt: page.polledAt,
    lastDeliveredAt,
    lastDelivered: lastDeliveredAt === null ? null : page.instantOf(lastDeliveredAt) - 1,
  };
}
