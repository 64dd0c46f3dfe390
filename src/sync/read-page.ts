import { troubleOf } from '../outcome/trouble.js';
import type { Room } from './byte-budget.js';
import type { FeedContext } from './context.js';
import { draftPage, type PageDraft } from './page-draft.js';
import { isTooMuch, LARGEST_ENTRY_BYTES } from './page-limit.js';
import type {
  BodyBounds,
  Clock,
  FeedFilters,
  FeedRequest,
  FeedService,
  FeedStart,
  Freshness,
  Position,
  RawPage,
  Trouble,
} from './ports.js';
import { provenDelivery } from './proven-delivery.js';
import { isUsableCursor } from './rejected-cursor.js';
import { type AnswerTimes, instantOf, isBelievable } from './service-clock.js';

/** How a feed is read. */
export interface ReadSettings {
  readonly filters: FeedFilters;
  readonly markdown: boolean;
  /** 1 to 200. */
  readonly pageLimit: number;
}

/** A poll of the feed that was answered. */
export interface Poll {
  /** Entries that came. */
  readonly items: number;
  readonly next: string | null;
}

/** One page as it came: enough is known of it to ask for the next. */
export interface ReceivedPage {
  readonly at: Position;
  /** The service's `nextCursor`; null where it sent none that can be stored. */
  readonly next: string | null;
  /** The service sent a `nextCursor` that cannot be stored or sent: more may follow. */
  readonly cursorUnusable: boolean;
  /** Entries that came. */
  readonly items: number;
  /** Of its body. */
  readonly bytes: number;
  /**
   * Checks its entries, which takes as long as receiving them. To be called once: then they are let go of, since they take
   * some ten times the bytes that are accounted for.
   */
  check(): FetchedPage;
}

/** One page as fetched, its entries checked. */
export interface FetchedPage extends Pick<ReceivedPage, 'at' | 'next' | 'cursorUnusable' | 'bytes'> {
  /** The polls it took: of pages that are committed together, each. */
  readonly through: readonly Poll[];
  readonly draft: PageDraft;
  readonly limit: number;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** Monotonic time of a delivery time of the service. Never after the poll. */
  instantOf(deliveredAt: Date): number;
  /** The delivery time up to which everything was read with this page ({@link provenDelivery}). */
  readonly provenUpTo: Date | null;
}

/** The feed cannot be passed by: an entry alone is larger than can be held or stored. Held. */
export class EntryTooLarge extends Error implements Trouble {
  override readonly name = 'EntryTooLarge';
  readonly kind = 'too_large';
  readonly remedy = 'hold';
  /** @param cause the refused answer; its bound, where it names one, is that of the memory there is */
  constructor(cause: unknown) {
    const bytes = (cause as { readonly maxBytes?: number }).maxBytes ?? LARGEST_ENTRY_BYTES;
    super(
      `one entry of the feed makes a page of more than ${Math.floor(bytes / 1024 ** 2)} MiB, which does not fit into memory. It is neither stored nor passed by, and is looked at again. Allow scanfeed more memory, or ask the operators of the service to deliver it without its value (resultTruncated)`,
      { cause },
    );
  }
}

/**
 * A page within the memory budget. One that is too large for it is asked for with half as many entries; while the budget
 * is used up by what comes earlier, it waits. The page's bytes are held in `room` until that is closed.
 */
export async function receivePageWithin(
  room: Room,
  { service, read, clock, pageLimit }: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit'>,
  at: Position,
  signal: AbortSignal,
): Promise<ReceivedPage> {
  for (let expected = pageLimit.expectedBytes; ; ) {
    const { entries: asked, maxBytes } = pageLimit;
    const holding = await room.hold(expected, 'page', signal);
    const bounds = { maxBytes, arrived: (bytes: number) => holding.arrived(bytes) };
    try {
      const page = await receivePage(service, { ...read, pageLimit: asked }, clock, at, holding.signal, bounds);
      holding.signal.throwIfAborted();
      const { bytes, items, next } = page;
      holding.finished(bytes);
      pageLimit.fitted({ asked, came: items, moved: next !== null && next !== at.cursor, bytes });
      return page;
    } catch (error) {
      holding.release();
      signal.throwIfAborted();
      if (holding.needs !== null) expected = holding.needs;
      else if (!isTooMuch(error)) throw error;
      else if (asked === 1) throw troubleOf(error).kind === 'too_large' ? new EntryTooLarge(error) : error;
      else pageLimit.tooLarge(asked, error);
    }
  }
}

/** The same, its entries checked. */
export async function readPageWithin(
  room: Room,
  context: Pick<FeedContext, 'service' | 'read' | 'clock' | 'pageLimit'>,
  at: Position,
  signal: AbortSignal,
): Promise<FetchedPage> {
  return (await receivePageWithin(room, context, at, signal)).check();
}

export async function readPage(
  service: FeedService,
  settings: ReadSettings,
  clock: Clock,
  at: Position,
  signal: AbortSignal,
): Promise<FetchedPage> {
  return (await receivePage(service, settings, clock, at, signal, {})).check();
}

async function receivePage(
  service: FeedService,
  settings: ReadSettings,
  clock: Clock,
  at: Position,
  signal: AbortSignal,
  bounds: Partial<BodyBounds>,
): Promise<ReceivedPage> {
  const polledAt = clock.monotonic();
  const page = await service.readPage({ ...requestAt(at, settings), ...bounds }, signal);
  const { serviceDate, nextCursor, body, items } = page;
  const times = { polledAt, receivedAt: clock.monotonic(), wallClock: clock.now(), serviceDate };
  // One that cannot be stored, or is too long to be sent, is as good as none.
  const next = nextCursor !== null && isUsableCursor(nextCursor) ? nextCursor : null;
  const received = { at, next, cursorUnusable: next !== nextCursor, items: items.length, bytes: body.length };
  let unchecked: RawPage | null = page;
  const check = (): FetchedPage => {
    if (unchecked === null) throw new TypeError('a page is checked once');
    const taken = unchecked;
    unchecked = null;
    return checkedPage(taken, received, times, settings.pageLimit);
  };
  return { ...received, check };
}

/** On its own, so that nothing of the page it was made from lives on in it but the draft. */
function checkedPage(
  page: RawPage,
  { at, next, cursorUnusable, items, bytes }: Omit<ReceivedPage, 'check'>,
  times: AnswerTimes,
  limit: number,
): FetchedPage {
  const draft = draftPage(page);
  return {
    at,
    next,
    cursorUnusable,
    bytes,
    through: [{ items, next }],
    draft,
    provenUpTo: provenDelivery(draft, (time) => isBelievable(time, times)),
    limit,
    polledAt: times.polledAt,
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

/** After a page without entries the loop decides; a cursor that stands still leads nowhere. */
export function leadsFurther({ at, next, items }: Pick<ReceivedPage, 'at' | 'next' | 'items'>): boolean {
  return items > 0 && next !== null && next !== at.cursor;
}

/**
 * Returns what a commit of this page may claim: everything up to just before the delivery time that it proves, since the
 * next page may begin with an entry of the same time.
 */
export function freshnessOf(page: FetchedPage, atEnd: boolean): Freshness {
  const { provenUpTo } = page;
  return {
    atEnd,
    polledAt: page.polledAt,
    lastDeliveredAt: provenUpTo,
    lastDelivered: provenUpTo === null ? null : page.instantOf(provenUpTo) - 1,
  };
}
