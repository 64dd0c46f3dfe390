import { troubleOf } from '../outcome/trouble.js';
import { systemClock } from '../service/deadline.js';
import { type FeedQuery, filtersOf } from '../service/feed-query.js';
import { InvalidArgumentError } from '../service/request-errors.js';
import type { FeedEntry } from '../service/wire.js';
import { pauseAfter, pauseUntilPoll } from '../sync/backoff.js';
import { type DeadEnd, type EndVerdict, findDeadEnd, isEndOfFeed, isRepeated } from '../sync/end-of-feed.js';
import { isTooMuch } from '../sync/page-limit.js';
import type { Clock, FeedService, Position, RawPage, Trouble } from '../sync/ports.js';
import { startAt } from '../sync/read-page.js';
import { createRecentCursors } from '../sync/recent-cursors.js';
import { isUsableCursor } from '../sync/rejected-cursor.js';
import { sortEntries, type UnusableEntry } from './sort-entries.js';

/** How to follow the feed. Without `cursor` and `since` it begins at the beginning of the history. */
export interface FollowOptions
  extends Pick<FeedQuery, 'since' | 'status' | 'environment' | 'documentType' | 'markdown'> {
  /** Where to go on: the `cursor` that was stored last. It goes before `since`. */
  readonly cursor?: string | null | undefined;
  /** Entries a page, 1 to 200. Default 200; halved by itself where a page is larger than the client takes. */
  readonly limit?: number | undefined;
  /** Pause at the end of the feed, milliseconds. Default 5,000. */
  readonly pollIntervalMs?: number | undefined;
  /** End at the end of the feed, instead of waiting for more. Default false. */
  readonly untilEnd?: boolean | undefined;
  /** Ends the iteration, whatever it waits for. */
  readonly signal?: AbortSignal | undefined;
  /** Which failures are waited out; the others are thrown. Default: those that pass by themselves (`remedy` is `retry`). */
  readonly waitOut?: ((error: FeedFailure) => boolean) | undefined;
  /** Told of each failure that is waited out. */
  readonly onFailure?: ((failure: WaitedOut) => void) | undefined;
  /** For tests. */
  readonly clock?: Pick<Clock, 'monotonic' | 'sleep' | 'random'> | undefined;
}

/** An error that knows what it is (`kind`), and whether it passes by itself (`remedy`). */
export type FeedFailure = Error & Trouble;

/** A failure after which the feed is asked again. */
export interface WaitedOut {
  readonly error: FeedFailure;
  /** In a row. */
  readonly failures: number;
  /** Until the next try. */
  readonly pauseMs: number;
}

/** A page of the feed. */
export interface FollowedPage {
  /** In the order of the feed (delivery time). Values have passed through JavaScript numbers; `body` has every digit. */
  readonly entries: readonly FeedEntry[];
  /** Entries that do not fit the interface (2.1): to be looked at by a person, not to be dropped. */
  readonly unusable: readonly UnusableEntry[];
  /** To be stored once the entries are, or with them; null while the service has given none. */
  readonly cursor: string | null;
  /** There was nothing behind this page when it was read. Such a page has no entries. */
  readonly atEnd: boolean;
  /** The page as received: JSON, UTF-8. */
  readonly body: Uint8Array;
}

const realClock = { ...systemClock, random: () => Math.random() };

/**
 * Follows the delivery feed, page by page, for those who have a store of their own. Each page is asked for when the one
 * before has been dealt with.
 *
 * Delivery is at-least-once (interface 4.2 rule 3): store the entries of a page, then its cursor, or both in one
 * transaction, and begin with the stored cursor. What came between two stored cursors comes again after a crash, and
 * corrections come as further entries: keep the highest `revision` of each `scanId`.
 *
 * Empty pages come where they have a new cursor to store, and once each time the end is reached.
 *
 * @throws the failures that `waitOut` does not take, with the feed where it was: begin again with the stored cursor.
 *   `InvalidRequestError` (400) is the cursor that the service no longer accepts, or a filter
 * @throws InvalidArgumentError
 */
export async function* followFeed(
  client: Pick<FeedService, 'readPage'>,
  options: FollowOptions = {},
): AsyncGenerator<FollowedPage, void, undefined> {
  const { clock = realClock, signal = new AbortController().signal, untilEnd = false } = options;
  const pollIntervalMs = checkedInterval(options.pollIntervalMs ?? 5_000);
  const reader = createReader(client, options, clock, signal);
  const recent = createRecentCursors();
  let at: Position = { cursor: options.cursor ?? null, since: options.since ?? null };
  let wasAtEnd = false;
  /** The last page, if it led nowhere. */
  let before: Read | null = null;
  while (!signal.aborted) {
    const polledAt = clock.monotonic();
    const read = await reader.next(at, before?.deadEnd ?? null);
    if (read === null) return;
    const { page, next, verdict, deadEnd } = read;
    const moved = next !== null && next !== at.cursor;
    const again: boolean = !moved && before !== null && Buffer.compare(page.body, before.page.body) === 0;
    const atEnd: boolean = verdict === 'end' || (again && isRepeated(deadEnd, before?.deadEnd ?? null));
    before = moved ? null : read;
    const wait = !moved || verdict === 'unclear' || recent.seen(next);
    at = { ...at, cursor: next ?? at.cursor };
    const entries = again ? { entries: [], unusable: [] } : sortEntries(page);
    if ((page.items.length > 0 && !again) || moved || (atEnd && !wasAtEnd)) {
      yield { ...entries, cursor: at.cursor, atEnd, body: page.body };
    }
    wasAtEnd = atEnd;
    if (atEnd && untilEnd) return;
    if (atEnd || wait) await clock.sleep(pauseUntilPoll(pollIntervalMs, clock.monotonic() - polledAt), signal);
  }
}

interface Read {
  readonly page: RawPage;
  /** Null where the service gave none that can be used. */
  readonly next: string | null;
  readonly verdict: EndVerdict;
  /** Of a short page only. */
  readonly deadEnd: DeadEnd | null;
}

/** Reads pages, and waits out what passes. */
function createReader(
  client: Pick<FeedService, 'readPage'>,
  { waitOut = ({ remedy }) => remedy === 'retry', onFailure, ...options }: FollowOptions,
  clock: NonNullable<FollowOptions['clock']>,
  signal: AbortSignal,
) {
  const filters = filtersOf(options);
  const { markdown = false } = options;
  let most = options.limit ?? 200;
  const read = async (at: Position, limit: number): Promise<Read> => {
    const page = await client.readPage({ filters, markdown, limit, start: startAt(at) }, signal);
    const { nextCursor } = page;
    const next = nextCursor !== null && isUsableCursor(nextCursor) ? nextCursor : null;
    const items = page.items.length;
    const polled = {
      at,
      next,
      cursorUnusable: next !== nextCursor,
      draft: { items },
      through: [{ items, next }],
      limit,
    };
    const verdict = await isEndOfFeed(polled, filters, client, signal);
    const mayBeLast = verdict === 'more' && items < limit;
    const deadEnd = mayBeLast ? await findDeadEnd(polled, filters, client, signal) : null;
    return { page, next, verdict, deadEnd };
  };
  return {
    /** Null when the signal aborts. */
    next: async (at: Position, deadEnd: DeadEnd | null): Promise<Read | null> => {
      let limit = deadEnd?.limit ?? most;
      for (let failures = 1; ; ) {
        try {
          const found = await read(at, limit);
          return signal.aborted ? null : found;
        } catch (error) {
          if (signal.aborted) return null;
          const trouble = troubleOf(error);
          if (isTooMuch(error) && limit > 1) {
            limit = Math.floor(limit / 2);
            most = Math.min(most, limit);
            continue;
          }
          if (!isFailure(error, trouble) || !waitOut(error)) throw error;
          const pauseMs = pauseAfter(failures, trouble, clock.random());
          onFailure?.({ error, failures, pauseMs });
          failures += 1;
          await clock.sleep(pauseMs, signal);
          if (signal.aborted) return null;
        }
      }
    },
  };
}

/** What does not say what it is was not thrown by the service's client. */
function isFailure(error: unknown, trouble: Trouble): error is FeedFailure {
  return error === trouble && error instanceof Error;
}

function checkedInterval(ms: number): number {
  if (ms >= 0 && ms < 2 ** 31) return ms;
  throw new InvalidArgumentError('pollIntervalMs must be a number from 0 to 2147483647');
}
