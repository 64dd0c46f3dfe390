import type { Clock } from '../core/clock.js';
import { systemClock } from '../core/clock.js';
import type { Failure } from '../core/errors.js';
import { classifyError } from '../core/errors.js';
import { InvalidArgumentError } from '../service/errors/request-errors.js';
import { type FeedQuery, filtersOf } from '../service/feed-query.js';
import type { FeedEntry } from '../service/wire.js';
import { isDeadEnd } from '../sync/page/end-of-feed.js';
import { type Step, walkFeed } from '../sync/page/walk-feed.js';
import type { FeedService } from '../sync/ports/index.js';
import { pauseAfter, pauseUntilPoll } from '../sync/retry/backoff.js';
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
  /** Which failures are waited out; the others are thrown. Default: those that pass by themselves (`action` is `retry`). */
  readonly waitOut?: ((error: FeedFailure) => boolean) | undefined;
  /** Told of each failure that is waited out. */
  readonly onFailure?: ((failure: WaitedOut) => void) | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** An error that knows what it is (`kind`), and whether it passes by itself (`action`). */
export type FeedFailure = Error & Failure;

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
  const { clock = systemClock, signal = new AbortController().signal, untilEnd = false } = options;
  const pollIntervalMs = checkedInterval(options.pollIntervalMs ?? 5_000);
  const { cursor = null, since = null, markdown = false, limit: pageLimit = 200 } = options;
  const read = { filters: filtersOf(options), markdown, pageLimit };
  const walk = walkFeed({ cursor, since }, { service: client, read, clock }, signal);
  let wasAtEnd = false;
  for (;;) {
    const step = await waitOutFailures(walk, options, clock, signal);
    if (step === null) return;
    const { page, progress, isRepeated } = step;
    const { raw, at, next, items } = page;
    const atEnd = progress === 'end';
    if ((items > 0 && !isRepeated) || !isDeadEnd(page) || (atEnd && !wasAtEnd)) {
      const entries = isRepeated ? { entries: [], unusable: [] } : sortEntries(raw);
      yield { ...entries, cursor: next ?? at.cursor, atEnd, body: raw.body };
    }
    wasAtEnd = atEnd;
    if (atEnd && untilEnd) return;
    if (progress !== 'more') {
      await clock.sleep(pauseUntilPoll(pollIntervalMs, clock.monotonic() - page.times.polledAt), signal);
    }
  }
}

/** Takes the next step, and waits out the failures that pass. Null when the signal aborts. */
async function waitOutFailures(
  walk: () => Promise<Step>,
  { waitOut = ({ action }) => action === 'retry', onFailure }: FollowOptions,
  clock: Clock,
  signal: AbortSignal,
): Promise<Step | null> {
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      const step = await walk();
      return signal.aborted ? null : step;
    } catch (error) {
      if (signal.aborted) return null;
      const failure = classifyError(error);
      if (!isFailure(error, failure) || !waitOut(error)) throw error;
      const pauseMs = pauseAfter(failures, failure, clock.random());
      onFailure?.({ error, failures, pauseMs });
      await clock.sleep(pauseMs, signal);
    }
  }
  return null;
}

/** What does not say what it is was not thrown by the service's client. */
function isFailure(error: unknown, failure: Failure): error is FeedFailure {
  return error === failure && error instanceof Error;
}

function checkedInterval(ms: number): number {
  if (ms >= 0 && ms < 2 ** 31) return ms;
  throw new InvalidArgumentError('pollIntervalMs must be a number from 0 to 2147483647');
}
