import { classifyError } from '../core/errors.js';
import { createBreaker } from './commit/breaker.js';
import { createCatchUpReporter } from './commit/catch-up-reporter.js';
import { storeFeedPage } from './commit/store-feed-page.js';
import type { PageProgress, PageResult } from './commit/store-page.js';
import type { LeaderContext } from './context.js';
import { createRecentCursors } from './page/cursors.js';
import type { DeadEnd } from './page/end-of-feed.js';
import { createFreshnessClaims } from './page/freshness-claims.js';
import type { CheckedPage } from './page/page.js';
import type { LeaseGrant, Position, SyncObserver } from './ports/index.js';
import { isOrdinary, MAX_JOINED_PAGES } from './prefetch/join-pages.js';
import { type PrefetchedPages, prefetchPages } from './prefetch/prefetch-pages.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { CursorReplaced, createCursorRefusals } from './recovery/rejected-cursor.js';
import { createHiddenEndReporter, createStuckReporter } from './recovery/stuck-reporter.js';
import { pauseAfter, pauseUntilPoll } from './retry/backoff.js';
import type { IdleGate } from './waiting/idle-gate.js';

/** Reads the feed page by page while this process holds the lease. Resolves when it is lost or the signal aborts. */
export async function readFeed(
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store, pollIntervalMs } = context;
  const state = createState(lease, context);
  let failures = 0;
  let fences = 0;
  /**
   * The position to continue from; null: read the stored one. Kept between polls, because the fence rejects a commit from any other
   * cursor.
   */
  let position: Position | null = null;
  let polledAt = clock.monotonic();
  const pause = async (ms: number, sleep = clock.sleep) => {
    observer.ticked(ms);
    idle.open();
    await sleep(ms, signal);
    idle.close();
  };
  while (!signal.aborted) {
    try {
      const start: Position = position ?? (await store.readPosition(lease.feed));
      position = null;
      const progress = await readFrom(start, lease, context, state, signal, (page) => {
        polledAt = page.polledAt;
        if (failures > 0) observer.recovered('feed');
        failures = 0;
        fences = 0;
      });
      if (progress === 'fenced') {
        if (!(await store.renewLease(lease, context.leaseTtlMs))) return;
        // Another writer moved the position; it is read again. If that does not help, something else keeps the commits back.
        fences += 1;
        if (fences > 1) await pause(pauseAfter(fences, { action: 'retry' }, clock.random()));
        continue;
      }
      if (state.at.cursor !== null) position = state.at; // without a cursor, the fence would not notice another `since`
      if (progress !== 'more') await pause(pauseUntilPoll(pollIntervalMs, clock.monotonic() - polledAt));
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, pauseMs);
      await pause(pauseMs, (ms, until) => context.pauseAfterFailure(error, ms, until));
    }
  }
}

type FeedState = ReturnType<typeof createState>;

/** Creates the state that is kept from page to page. */
function createState(lease: LeaseGrant, context: LeaderContext) {
  return {
    recentCursors: createRecentCursors(),
    claims: createFreshnessClaims(),
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    catchUp: createCatchUpReporter(lease, context),
    stuck: createStuckReporter(lease, context),
    hiddenEnd: createHiddenEndReporter(context),
    deadEnd: null as DeadEnd | null,
    /** The position that the last committed page led to. */
    at: { cursor: null, since: null } as Position,
  };
}

/** Commits pages in order from a position on, until one leads no further. */
async function readFrom(
  start: Position,
  lease: LeaseGrant,
  context: LeaderContext,
  state: FeedState,
  signal: AbortSignal,
  onCommitted: (page: CheckedPage) => void,
): Promise<PageProgress> {
  const { maxHeldPages: maxHeld } = context;
  const options = { priority: 'feed', maxJoined: MAX_JOINED_PAGES, maxHeld, deadEnd: state.deadEnd } as const;
  const pages = prefetchPages(start, options, context, signal);
  // The database has lost commits, or another writer moved the feed: a cursor may return without a circle.
  if (start.cursor !== state.at.cursor) state.recentCursors = createRecentCursors();
  if (start.cursor !== state.at.cursor || start.since?.getTime() !== state.at.since?.getTime()) state.claims.moved();
  state.at = start;
  const storeAndReport: StorePage = async (page, before) => {
    const { breaker, recentCursors, claims, deadEnd } = state;
    const pageContext = { ...context, lease, breaker, recentCursors, claims, deadEnd, before };
    const result = await storeFeedPage(page, pageContext, signal);
    if (result.progress === 'fenced') return result;
    state.deadEnd = result.deadEnd;
    // A pause follows the end, so no circle through it needs detecting. An idle feed should not keep its cursors in memory.
    if (result.progress === 'end') state.recentCursors = createRecentCursors();
    if (result.progress === 'end' || result.deadEnd?.isShort === true) claims.ended(page);
    state.at = { ...state.at, cursor: page.next ?? state.at.cursor };
    const isRefused = result.progress === 'unclear' && (page.items === 0 || result.deadEnd?.isShort === null);
    state.hiddenEnd.report({ isEnd: result.progress === 'end', isRefused });
    onCommitted(page);
    await reportStored(page, result.progress, state, context.observer);
    pages.release(); // not before: the report may wait for a connection, and refers to the page
    return result;
  };
  try {
    return await storeInOrder(pages, storeAndReport, context, state.refusals.accepted).finally(pages.close);
  } catch (error) {
    const { cursor } = state.at;
    if (cursor === null || !state.refusals.isPersistent(cursor, error)) throw error;
    pages.stop(); // the recovery reads pages of its own
    await recoverCursor(error, cursor, lease, context, signal);
    state.recentCursors = createRecentCursors(); // a cursor may return now without a circle
    throw new CursorReplaced('the feed', error, context.pollIntervalMs);
  }
}

/** @param before the result of the page before, if that one is still being stored */
type StorePage = (page: CheckedPage, before: Promise<PageResult> | null) => Promise<PageResult>;

/** A page that is being stored, or was stored and is not awaited yet. */
interface StoringPage {
  readonly isOrdinary: boolean;
  readonly result: Promise<PageResult>;
}

/**
 * Stores pages in order until one leads no further, and returns what follows it. Two consecutive ordinary pages overlap:
 * PostgreSQL parses the second while it writes the first.
 */
async function storeInOrder(
  pages: PrefetchedPages,
  storePage: StorePage,
  { observer, stepMs, maxPageCommits }: LeaderContext,
  onRead: () => void,
): Promise<PageProgress> {
  /** In the order of the feed. */
  const storing: StoringPage[] = [];
  /** Waits until at most `count` pages are being stored. Returns the first result other than `more`, if there is one. */
  const waitUntilAtMost = async (count: number): Promise<PageProgress> => {
    while (storing.length > count) {
      const { progress } = await (storing.shift() as StoringPage).result;
      if (progress !== 'more') return progress;
    }
    return 'more';
  };
  /** A function of its own, because a page in a variable of the loop would stay in memory while the loop waits for the next one. */
  const beginNext = async (): Promise<PageProgress | null> => {
    const page = await nextPage(pages, storing);
    const overlaps = page !== null && isOrdinary(page) && storing.every((before) => before.isOrdinary);
    const progress = overlaps ? 'more' : await waitUntilAtMost(0);
    if (page === null || progress !== 'more') return progress;
    onRead();
    const result = storePage(page, storing.at(-1)?.result ?? null);
    // Reading stops at once when a page fails or leads no further.
    result.then(({ progress }) => progress !== 'more' && pages.stop(), pages.stop);
    storing.push({ result, isOrdinary: isOrdinary(page) });
    return null;
  };
  try {
    for (;;) {
      observer.ticked(stepMs);
      const earlier = await waitUntilAtMost(maxPageCommits - 1);
      if (earlier !== 'more') return earlier;
      const progress = await beginNext();
      if (progress !== null) return progress;
    }
  } finally {
    await Promise.allSettled(storing.map(({ result }) => result));
  }
}

/** Returns the next page; null after the last one, or if one that is being stored leads no further. */
async function nextPage(pages: PrefetchedPages, storing: readonly StoringPage[]): Promise<CheckedPage | null> {
  try {
    return await pages.next();
  } catch (error) {
    // A page that is being stored may lead no further, or fail itself: that takes precedence.
    for (const { result } of storing) if ((await result).progress !== 'more') return null;
    throw error;
  }
}

async function reportStored(
  page: CheckedPage,
  progress: PageProgress,
  { catchUp, stuck }: FeedState,
  observer: SyncObserver,
): Promise<void> {
  reportPolls(page, progress, observer);
  observer.caughtUp(progress === 'end' ? page.polledAt : null);
  if (progress === 'more') await catchUp.pageCommitted(page);
  else await catchUp.stop();
  await stuck.report(progress === 'stuck');
}

/** Reports each poll of a page. The last one has the outcome of the page; those before it had entries. */
function reportPolls({ polls }: CheckedPage, progress: PageProgress, observer: SyncObserver) {
  polls.forEach(({ items }, index) => {
    const last = index === polls.length - 1;
    const outcome = last && (progress === 'end' || progress === 'stuck') ? progress : items > 0 ? 'entries' : 'skipped';
    observer.polled(outcome, items);
  });
}
