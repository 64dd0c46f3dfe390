import type { Clock } from '../../core/clock.js';
import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import type { FeedContext, ReadSettings } from '../context.js';
import type { MemoryTicket } from '../memory/memory-budget.js';
import type { BodyBounds, FeedRequest, FeedService, FeedStart, Position, RawPage } from '../ports/index.js';
import { isUsableCursor } from '../recovery/rejected-cursor.js';
import { type CheckedPage, checkPage } from './check-page.js';
import { isOversized, LARGEST_ENTRY_BYTES } from './page-limit.js';
import { provenDelivery } from './proven-delivery.js';
import { type AnswerTimes, isPlausible, monotonicTimeOf, possibleDelivery } from './service-clock.js';

/** An answered poll of the feed. */
export interface Poll {
  /** Number of entries received. */
  readonly items: number;
  readonly next: string | null;
}

/** The part of a page that determines what follows it. */
export interface PolledPage {
  readonly at: Position;
  /** The service's `nextCursor`; null if it sent none that can be stored. */
  readonly next: string | null;
  /** Whether the service sent a `nextCursor` that cannot be stored or sent. Then more may follow. */
  readonly cursorUnusable: boolean;
  /** Whether a cache gave it. Then it may be the same response as the one before. */
  readonly isCached?: boolean;
  /** Number of entries received. */
  readonly items: number;
  /** Number of entries requested. */
  readonly limit: number;
  /** Its polls: one, or one for each of the pages that are committed together. */
  readonly polls: readonly Poll[];
}

/** A page as the service answered. */
export interface AnsweredPage extends PolledPage {
  readonly raw: RawPage;
  readonly times: AnswerTimes;
}

/** A page whose entries are not checked yet. It has what is needed to request the next page. */
export interface ReceivedPage extends PolledPage {
  /** Size of its body, bytes. */
  readonly bytes: number;
  /**
   * Checks its entries, which takes as long as receiving them. May be called only once, since it releases the parsed entries, which
   * take some ten times the reserved bytes.
   */
  check(): FetchedPage;
}

/** One page as fetched, its entries checked. */
export interface FetchedPage extends PolledPage, Pick<ReceivedPage, 'bytes'> {
  readonly checked: CheckedPage;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Returns the monotonic time of a delivery time of the service, never after the poll. */
  monotonicTimeOf(deliveredAt: Date): number;
  /** Returns a delivery time; null if it is ahead of any clock. */
  possibleDelivery(deliveredAt: Date | null): Date | null;
  /** The delivery time up to which everything was read with this page ({@link provenDelivery}). */
  readonly provenUpTo: Date | null;
}

/** A single entry is too large for the memory or the database. The feed holds. */
export class EntryTooLarge extends Error implements Failure {
  override readonly name = 'EntryTooLarge';
  readonly kind = 'too_large';
  readonly action = 'hold';
  /** @param cause the error; it may have the maximum size, by the available memory */
  constructor(cause: unknown) {
    const bytes = (cause as { readonly maxBytes?: number }).maxBytes ?? LARGEST_ENTRY_BYTES;
    super(
      `one entry of the feed makes a page of more than ${Math.floor(bytes / 1024 ** 2)} MiB, which does not fit into memory. It is neither stored nor skipped, and is requested again. Give scanfeed more memory, or ask the operators of the service to deliver it without its value (resultTruncated)`,
      { cause },
    );
  }
}

/**
 * Reads a page within the memory budget. If it is too large, it is requested again with half as many entries. It waits for memory
 * before it is requested, and while it is received. Its bytes stay reserved until the ticket is closed.
 */
export async function receivePageWithin(
  ticket: MemoryTicket,
  { service, read, clock, pageLimit }: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit'>,
  at: Position,
  signal: AbortSignal,
): Promise<ReceivedPage> {
  for (;;) {
    const { entries: requested, maxBytes, expectedBytes } = pageLimit;
    const reservation = await ticket.reserve(expectedBytes, signal);
    const bounds = { maxBytes, expectedBytes, reserve: reservation.resize };
    try {
      const page = await receivePage(service, { ...read, pageSize: requested }, clock, at, signal, bounds);
      const { bytes, items, next } = page;
      void reservation.resize(bytes);
      pageLimit.fitted({ requested, received: items, moved: next !== null && next !== at.cursor, bytes });
      return page;
    } catch (error) {
      pageLimit.interrupted(reservation.bytes);
      reservation.release();
      signal.throwIfAborted();
      if (!isOversized(error)) throw error;
      if (requested === 1) throw classifyError(error).kind === 'too_large' ? new EntryTooLarge(error) : error;
      pageLimit.tooLarge(requested, error);
    }
  }
}

/** Requests a page; its entries are available once they are checked. */
async function receivePage(
  service: FeedService,
  settings: ReadSettings,
  clock: Clock,
  at: Position,
  signal: AbortSignal,
  bounds: BodyBounds,
): Promise<ReceivedPage> {
  const answered = await requestPage(service, settings, clock, at, signal, bounds);
  const { raw, times, ...polled } = answered;
  let unchecked: AnsweredPage | null = answered;
  const check = (): FetchedPage => {
    if (unchecked === null) throw new TypeError('a page can be checked only once');
    const taken = unchecked;
    unchecked = null;
    return checkAnsweredPage(taken);
  };
  return { ...polled, bytes: raw.body.length, check };
}

/** Requests the page at a position. */
export async function requestPage(
  service: Pick<FeedService, 'readPage'>,
  settings: ReadSettings,
  clock: Pick<Clock, 'monotonic' | 'now'>,
  at: Position,
  signal: AbortSignal,
  bounds: Partial<BodyBounds> = {},
): Promise<AnsweredPage> {
  const sentAt = clock.monotonic();
  const raw = await service.readPage({ ...requestAt(at, settings), ...bounds }, signal);
  const { serviceDate, nextCursor, cache, ageMs = 0 } = raw;
  // The response of a cache is that of an earlier poll, and proves nothing newer.
  const polledAt = sentAt - ageMs;
  const times = { polledAt, receivedAt: clock.monotonic(), wallClock: clock.now(), serviceDate };
  // A cursor that cannot be stored, or is too long to be sent, counts as missing.
  const next = nextCursor !== null && isUsableCursor(nextCursor) ? nextCursor : null;
  const items = raw.items.length;
  const limit = settings.pageSize;
  const cursorUnusable = next !== nextCursor;
  return { at, next, cursorUnusable, isCached: Boolean(cache), items, limit, polls: [{ items, next }], raw, times };
}

/** Checks the entries of a page. A separate function, so that its result keeps nothing else of the response in memory. */
export function checkAnsweredPage({ raw, times, ...polled }: AnsweredPage): FetchedPage {
  const checked = checkPage(raw);
  const page = {
    isPlausible: (time: Date) => isPlausible(time, times),
    isFull: polled.items >= polled.limit,
    answerMs: times.receivedAt - times.polledAt,
  };
  return {
    ...polled,
    bytes: raw.body.length,
    checked,
    provenUpTo: provenDelivery(checked, page),
    polledAt: times.polledAt,
    monotonicTimeOf: (deliveredAt) => monotonicTimeOf(deliveredAt, times),
    possibleDelivery: (deliveredAt) => possibleDelivery(deliveredAt, times.wallClock),
  };
}

/** Returns where a request starts. Without a cursor it is a time: that of the first start, of a rewind or of a rejected cursor. */
export function startAt({ cursor, since }: Position): FeedStart {
  if (cursor !== null) return { cursor };
  return since !== null ? { since } : { beginning: true };
}

function requestAt(at: Position, { filters, markdown, pageSize }: ReadSettings): FeedRequest {
  return { filters, markdown, limit: pageSize, start: startAt(at) };
}

/** Returns whether the next page can be requested at once. After a page without entries the caller decides. */
export function leadsFurther({ at, next, items }: PolledPage): boolean {
  return items > 0 && next !== null && next !== at.cursor;
}
