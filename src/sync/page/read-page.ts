import type { Clock } from '../../core/clock.js';
import { classifyError, type Failure } from '../../core/errors.js';
import type { MemoryTicket } from '../memory/memory-budget.js';
import type { BodyBounds, FeedFilters, FeedStart, PageService, Position } from '../ports/index.js';
import { isUsableCursor } from './cursors.js';
import type { ReceivedPage } from './page.js';
import { isOversized, LARGEST_ENTRY_BYTES, type PageLimit } from './page-limit.js';

/** A single entry is too large for the memory or the database. The feed holds. */
class EntryTooLarge extends Error implements Failure {
  override readonly name = 'EntryTooLarge';
  readonly kind = 'too_large';
  readonly action = 'hold';
  /** @param cause the error; it may have the maximum size, by the available memory */
  constructor(cause: unknown) {
    const bytes = (cause as { readonly maxBytes?: number }).maxBytes ?? LARGEST_ENTRY_BYTES;
    super(
      `one entry of the feed makes a page of more than ${Math.floor(bytes / 1024 ** 2)} MiB, which does not fit into memory. It is neither stored nor skipped, and is requested again. Give scanfeed more memory, or ask the operators of the service to deliver it without its result (resultTruncated)`,
      { cause },
    );
  }
}

/** Which pages of a feed to request. */
export interface ReadSettings {
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  readonly limit: PageLimit;
}

/** What a request for a page needs. */
export interface RequestContext {
  readonly service: PageService;
  readonly clock: Clock;
}

/**
 * Reads a page within the memory budget. It waits for memory before it is requested, and while it is received. Its bytes stay reserved
 * until the ticket is closed.
 * @param first as in {@link requestPage}
 */
export function receivePageWithin(
  ticket: MemoryTicket,
  at: Position,
  read: ReadSettings,
  context: RequestContext,
  signal: AbortSignal,
  first: number | null = null,
): Promise<ReceivedPage> {
  const { limit } = read;
  return requestFitting(limit, first, async (entries) => {
    const { maxBytes, expectedBytes } = limit;
    const reservation = await ticket.reserve(expectedBytes, signal);
    const bounds = { maxBytes, expectedBytes, reserve: reservation.resize };
    try {
      const page = await requestEntries(at, entries, read, context, signal, bounds);
      const { items, next, raw } = page;
      const bytes = raw.body.length;
      void reservation.resize(bytes);
      limit.fitted({ requested: entries, received: items, moved: next !== null && next !== at.cursor, bytes });
      return page;
    } catch (error) {
      limit.interrupted(reservation.bytes);
      reservation.release();
      signal.throwIfAborted();
      throw entries === 1 && classifyError(error).kind === 'too_large' ? new EntryTooLarge(error) : error;
    }
  });
}

/**
 * Requests the page at a position.
 * @param first how many entries to request first; null: as many as the limit allows
 */
export function requestPage(
  at: Position,
  read: ReadSettings,
  context: RequestContext,
  signal: AbortSignal,
  first: number | null,
): Promise<ReceivedPage> {
  return requestFitting(read.limit, first, (entries) => requestEntries(at, entries, read, context, signal));
}

/** Requests fewer entries while the response is too large. */
async function requestFitting(
  limit: PageLimit,
  first: number | null,
  request: (entries: number) => Promise<ReceivedPage>,
): Promise<ReceivedPage> {
  for (let entries = first ?? limit.entries, isFirst = first !== null; ; entries = limit.entries, isFirst = false) {
    try {
      return await request(entries);
    } catch (error) {
      if (!isOversized(error) || entries === 1) throw error;
      if (!isFirst) limit.tooLarge(entries, error);
    }
  }
}

async function requestEntries(
  at: Position,
  limit: number,
  { filters, markdown }: ReadSettings,
  { service, clock }: RequestContext,
  signal: AbortSignal,
  bounds: Partial<BodyBounds> = {},
): Promise<ReceivedPage> {
  const sentAt = clock.monotonic();
  const raw = await service.readPage({ filters, markdown, limit, start: startAt(at), ...bounds }, signal);
  const { serviceDate, nextCursor, cache, ageMs = 0 } = raw;
  // The response of a cache is that of an earlier poll, and proves nothing newer.
  const polledAt = sentAt - ageMs;
  const receivedAt = clock.monotonic();
  const times = { polledAt, receivedAt, wallClock: clock.now(), serviceDate };
  // A cursor that cannot be stored, or is too long to be sent, counts as missing.
  const next = nextCursor !== null && isUsableCursor(nextCursor) ? nextCursor : null;
  const items = raw.items.length;
  const cursorUnusable = next !== nextCursor;
  const polls = [{ items, next, polledAt, receivedAt, loadedAt: receivedAt }];
  return { at, next, cursorUnusable, isCached: Boolean(cache), items, limit, polls, polledAt, raw, times };
}

/** Returns where a request starts. Without a cursor it is a time: that of the first start, of a rewind or of a rejected cursor. */
export function startAt({ cursor, since }: Position): FeedStart {
  if (cursor !== null) return { cursor };
  return since !== null ? { since } : { beginning: true };
}
