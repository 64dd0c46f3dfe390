import type { Clock } from '../../core/clock.js';
import type { Failure } from '../../core/errors.js';
import { classifyError } from '../../core/errors.js';
import type { FeedContext, ReadSettings } from '../context.js';
import type { MemoryTicket } from '../memory/memory-budget.js';
import type {
  BodyBounds,
  FeedRequest,
  FeedService,
  FeedStart,
  FreshnessClaim,
  Position,
  RawPage,
} from '../ports/index.js';
import { isUsableCursor } from '../recovery/rejected-cursor.js';
import { type CheckedPage, checkPage } from './check-page.js';
import { isTooMuch, LARGEST_ENTRY_BYTES } from './page-limit.js';
import { provenDelivery } from './proven-delivery.js';
import { type AnswerTimes, instantOf, isBelievable } from './service-clock.js';

/** A poll of the feed that was answered. */
export interface Poll {
  /** Number of entries received. */
  readonly items: number;
  readonly next: string | null;
}

/** The part of a page that shows where the feed leads. */
export interface PolledPage {
  readonly at: Position;
  /** The service's `nextCursor`; null if it sent none that can be stored. */
  readonly next: string | null;
  /** The service sent a `nextCursor` that cannot be stored or sent: more may follow. */
  readonly cursorUnusable: boolean;
  /** Number of entries received. */
  readonly items: number;
  /** Number of entries requested. */
  readonly limit: number;
  /** The polls that it took: one, or one for each of the pages that are committed together. */
  readonly polls: readonly Poll[];
}

/** A page as the service answered. */
export interface AnsweredPage extends PolledPage {
  readonly raw: RawPage;
  readonly times: AnswerTimes;
}

/** A page whose entries are not checked yet: enough is known to request the next one. */
export interface ReceivedPage extends PolledPage {
  /** Size of its body. */
  readonly bytes: number;
  /**
   * Checks its entries, which takes as long as receiving them. May be called once: it releases the parsed entries, which take
   * some ten times the bytes that are reserved.
   */
  check(): FetchedPage;
}

/** One page as fetched, its entries checked. */
export interface FetchedPage extends PolledPage, Pick<ReceivedPage, 'bytes'> {
  readonly checked: CheckedPage;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time of a delivery time of the service. Never after the poll. */
  instantOf(deliveredAt: Date): number;
  /** The delivery time up to which everything was read with this page ({@link provenDelivery}). */
  readonly provenUpTo: Date | null;
}

/** A single entry is larger than can be held or stored. The feed holds. */
export class EntryTooLarge extends Error implements Failure {
  override readonly name = 'EntryTooLarge';
  readonly kind = 'too_large';
  readonly action = 'hold';
  /** @param cause the refused answer; its bound, if it has one, is that of the available memory */
  constructor(cause: unknown) {
    const bytes = (cause as { readonly maxBytes?: number }).maxBytes ?? LARGEST_ENTRY_BYTES;
    super(
      `one entry of the feed makes a page of more than ${Math.floor(bytes / 1024 ** 2)} MiB, which does not fit into memory. It is neither stored nor skipped, and is requested again. Allow scanfeed more memory, or ask the operators of the service to deliver it without its value (resultTruncated)`,
      { cause },
    );
  }
}

/**
 * Reads a page within the memory budget. If it is too large, it is requested again with half as many entries. It waits while
 * downloads of higher priority use up the budget. Its bytes stay reserved until the ticket is closed.
 */
export async function receivePageWithin(
  ticket: MemoryTicket,
  { service, read, clock, pageLimit }: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit'>,
  at: Position,
  signal: AbortSignal,
): Promise<ReceivedPage> {
  for (let expected = pageLimit.expectedBytes; ; ) {
    const { entries: asked, maxBytes } = pageLimit;
    const reservation = await ticket.reserve(expected, 'page', signal);
    const bounds = { maxBytes, onReceived: (bytes: number) => reservation.grow(bytes) };
    try {
      const page = await receivePage(service, { ...read, pageLimit: asked }, clock, at, reservation.signal, bounds);
      reservation.signal.throwIfAborted();
      const { bytes, items, next } = page;
      reservation.finish(bytes);
      pageLimit.fitted({ asked, received: items, moved: next !== null && next !== at.cursor, bytes });
      return page;
    } catch (error) {
      reservation.release();
      signal.throwIfAborted();
      if (reservation.preemptedFor !== null) expected = reservation.preemptedFor;
      else if (!isTooMuch(error)) throw error;
      else if (asked === 1) throw classifyError(error).kind === 'too_large' ? new EntryTooLarge(error) : error;
      else pageLimit.tooLarge(asked, error);
    }
  }
}

/** Reads a page within the memory budget and checks its entries. */
export async function readPageWithin(
  ticket: MemoryTicket,
  context: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit'>,
  at: Position,
  signal: AbortSignal,
): Promise<FetchedPage> {
  return (await receivePageWithin(ticket, context, at, signal)).check();
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
    if (unchecked === null) throw new TypeError('a page is checked once');
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
  const polledAt = clock.monotonic();
  const raw = await service.readPage({ ...requestAt(at, settings), ...bounds }, signal);
  const { serviceDate, nextCursor } = raw;
  const times = { polledAt, receivedAt: clock.monotonic(), wallClock: clock.now(), serviceDate };
  // A cursor that cannot be stored, or is too long to be sent, counts as missing.
  const next = nextCursor !== null && isUsableCursor(nextCursor) ? nextCursor : null;
  const items = raw.items.length;
  const limit = settings.pageLimit;
  return { at, next, cursorUnusable: next !== nextCursor, items, limit, polls: [{ items, next }], raw, times };
}

/** Checks the entries of a page. A function of its own, so that its result refers to nothing of the answer but what was checked. */
export function checkAnsweredPage({ raw, times, ...polled }: AnsweredPage): FetchedPage {
  const checked = checkPage(raw);
  return {
    ...polled,
    bytes: raw.body.length,
    checked,
    provenUpTo: provenDelivery(checked, (time) => isBelievable(time, times)),
    polledAt: times.polledAt,
    instantOf: (deliveredAt) => instantOf(deliveredAt, times),
  };
}

/** A feed without a cursor continues from its time: that of its first start, or of a rewind or rejected cursor. */
export function startAt({ cursor, since }: Position): FeedStart {
  if (cursor !== null) return { cursor };
  return since !== null ? { since } : { beginning: true };
}

function requestAt(at: Position, { filters, markdown, pageLimit }: ReadSettings): FeedRequest {
  return { filters, markdown, limit: pageLimit, start: startAt(at) };
}

/** Whether the next page can be requested at once. After a page without entries the loop decides. */
export function leadsFurther({ at, next, items }: PolledPage): boolean {
  return items > 0 && next !== null && next !== at.cursor;
}

/**
 * Returns what a commit of this page may claim: everything up to just before the delivery time that it proves, since the
 * next page may begin with an entry of the same time.
 */
export function freshnessClaimOf(page: FetchedPage, atEnd: boolean): FreshnessClaim {
  const { provenUpTo } = page;
  return {
    atEnd,
    polledAt: page.polledAt,
    lastDeliveredAt: provenUpTo,
    lastDelivered: provenUpTo === null ? null : page.instantOf(provenUpTo) - 1,
  };
}
