import { type Clock, systemClock } from '../core/clock.js';
import { classifyError, type Failure } from '../core/errors.js';
import { requireArgument, requireFunctions } from '../service/check-arguments.js';
import { requireOptions } from '../service/client.js';
import { dateOf, type FeedQuery, feedRequestOf, filtersOf } from '../service/feed-query.js';
import { feedPath } from '../service/requests.js';
import { isDeadEnd } from '../sync/page/end-of-feed.js';
import { type Step, walkFeed } from '../sync/page/walk-feed.js';
import type { PageService } from '../sync/ports/index.js';
import { pauseAfter, pauseUntilDue } from '../sync/retry/backoff.js';
import type { FeedPage } from './recognition-client.js';
import { sortEntries } from './sort-entries.js';

/** How to follow the feed. Without `cursor` and `since` it starts at the beginning of the history. */
export interface FollowOptions extends FeedQuery {
  /** Where to continue: the `cursor` that was stored last. It takes precedence over `since`. */
  readonly cursor?: string | null | undefined;
  /** Entries per page, 1 to 200. Default 200; halved automatically if a page is larger than the client accepts. */
  readonly limit?: number | undefined;
  /** Pause at the end of the feed, milliseconds. Default 5,000. */
  readonly pollIntervalMs?: number | undefined;
  /** Whether to stop at the end of the feed instead of waiting for more. Default false. */
  readonly untilEnd?: boolean | undefined;
  /** Ends the iteration at any point. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Returns whether to wait and retry after a failure; otherwise it is thrown. Default: if it is temporary (`action` is `retry`).
   */
  readonly waitOut?: ((error: FeedFailure) => boolean) | undefined;
  /** Called for each failure that is retried. */
  readonly onFailure?: ((failure: WaitedOut) => void) | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
}

/** An error with its `kind`, and the `action` that shows whether it is temporary. */
export type FeedFailure = Error & Failure;

/** A failure that is retried. */
export interface WaitedOut {
  /** The failure. */
  readonly error: FeedFailure;
  /** Number of failures in a row. */
  readonly failures: number;
  /** Pause before the next try, milliseconds. */
  readonly pauseMs: number;
}

/** A page of the feed that was followed. */
export interface FollowedPage extends FeedPage {
  /** Whether this was the end of the feed when the page was read. Such a page has no entries. */
  readonly atEnd: boolean;
}

/**
 * Follows the delivery feed page by page, for programs with a store of their own. Each page is requested when the previous
 * one has been processed.
 *
 * Delivery is at-least-once (interface 4.2 rule 3): store the entries of a page, then its cursor, or both in one
 * transaction, and start with the stored cursor. After a crash, entries since the stored cursor are delivered again, and
 * corrections are delivered as further entries: keep the highest `revision` of each `scanId`.
 *
 * Empty pages are returned if they have a new cursor to store, and once each time the end is reached.
 *
 * @throws the failures for which `waitOut` returns false. Start again with the stored cursor. The kind `http_400` means
 * that
 *   the service no longer accepts the cursor, or rejects a filter
 * @throws InvalidArgumentError
 */
export async function* followFeed(
  client: PageService,
  options: FollowOptions = {},
  ...more: readonly never[]
): AsyncGenerator<FollowedPage, void, undefined> {
  requireOptions(options, more);
  const { clock = systemClock, signal = new AbortController().signal, untilEnd = false, waitOut, onFailure } = options;
  requireFunctions({ waitOut, onFailure });
  const { pollIntervalMs = 5_000 } = options;
  const isInterval = pollIntervalMs >= 0 && pollIntervalMs < 2 ** 31;
  requireArgument(isInterval, 'pollIntervalMs must be a number from 0 to 2147483647');
  const { cursor = null, since = null, markdown = false, limit: pageSize = 200 } = options;
  const read = { filters: filtersOf(options), markdown, pageSize };
  // Checked before the first request, since `waitOut` may accept all errors.
  feedPath(feedRequestOf({ ...options, limit: pageSize, since: cursor === null ? since : null }));
  const walk = walkFeed(
    { cursor, since: since === null ? null : dateOf(since) },
    { service: client, read, clock },
    signal,
  );
  let wasAtEnd = false;
  for (;;) {
    const taken: Taken | null = yield* yieldPage(() => waitOutFailures(walk, options, clock, signal), wasAtEnd);
    if (taken === null) return;
    const { next, polledAt }: Taken = taken;
    wasAtEnd = next === 'end';
    if (wasAtEnd && untilEnd) return;
    if (next !== 'more') await clock.sleep(pauseUntilDue(pollIntervalMs, clock.monotonic() - polledAt), signal);
  }
}

/** What a step says about the next one. `polledAt`: monotonic time of its request. */
interface Taken {
  readonly next: Step['next'];
  readonly polledAt: number;
}

/**
 * Yields the page of a step if it brings anything. Returns what follows it; null after the last step. A function of its own, because
 * a page in a variable of the loop would stay in memory while the loop waits for the next one.
 */
async function* yieldPage(
  takeStep: () => Promise<Step | null>,
  wasAtEnd: boolean,
): AsyncGenerator<FollowedPage, Taken | null, undefined> {
  const step = await takeStep();
  if (step === null) return null;
  const { page, next, isRepeated } = step;
  const { raw, at, items } = page;
  const atEnd = next === 'end';
  if ((items > 0 && !isRepeated) || !isDeadEnd(page) || (atEnd && !wasAtEnd)) {
    const entries = isRepeated ? { entries: [], unusable: [] } : sortEntries(raw);
    yield { ...entries, cursor: page.next ?? at.cursor, atEnd, body: raw.body };
  }
  return { next, polledAt: page.polledAt };
}

/** Takes the next step; waits and retries after temporary failures. Null when the signal aborts. */
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

/** Returns whether an error was thrown by the client of the service. */
function isFailure(error: unknown, failure: Failure): error is FeedFailure {
  return error === failure && error instanceof Error;
}
