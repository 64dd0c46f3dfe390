import { classifyError } from '../core/errors.js';
import { type CatchUpReporter, createCatchUpReporter } from './commit/catch-up-reporter.js';
import { storeFeedPage } from './commit/store-feed-page.js';
import type { PageProgress, PageResult } from './commit/store-page.js';
import type { LeaderContext } from './context.js';
import type { DeadEnd } from './page/end-of-feed.js';
import { createRecentCursors, type RecentCursors } from './page/recent-cursors.js';
import type { LeaseGrant, Position, SyncObserver } from './ports/index.js';
import type { CompletedPage } from './prefetch/completed-page.js';
import { isJoinable, MAX_JOINED_PAGES } from './prefetch/join-pages.js';
import { prefetchPages } from './prefetch/prefetch-pages.js';
import type { ReadAhead } from './prefetch/read-ahead.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { type CursorRefusals, CursorReplaced, createCursorRefusals } from './recovery/rejected-cursor.js';
import { createStuckReporter, type StuckReporter } from './recovery/stuck-reporter.js';
import { pauseAfter, pauseUntilPoll } from './retry/backoff.js';
import { type Breaker, createBreaker } from './retry/breaker.js';
import type { IdleGate } from './retry/idle-gate.js';

/** Reads the feed page by page while this process holds the lease. Resolves when it is lost or the signal aborts. */
export async function readFeed(
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store, pollIntervalMs } = context;
  const state: FeedState = {
    recentCursors: createRecentCursors(),
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    catchUp: createCatchUpReporter(lease, context),
    stuck: createStuckReporter(lease, context),
    deadEnd: null,
    at: { cursor: null, since: null },
  };
  let failures = 0;
  let polledAt = clock.monotonic();
  const pause = async (ms: number, sleep = clock.sleep) => {
    observer.ticked(ms);
    idle.open();
    await sleep(ms, signal);
    idle.close();
  };
  while (!signal.aborted) {
    try {
      const start = await store.readPosition(lease.feed);
      const progress = await readFrom(start, lease, context, state, signal, (page) => {
        polledAt = page.polledAt;
        if (failures > 0) observer.recovered('feed', failures);
        failures = 0;
      });
      if (progress === 'fenced' && !(await store.renewLease(lease, context.leaseTtlMs))) return;
      if (progress !== 'more' && progress !== 'fenced') {
        await pause(pauseUntilPoll(pollIntervalMs, clock.monotonic() - polledAt));
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, failures, pauseMs);
      await pause(pauseMs, (ms, until) => context.pauseAfterFailure(error, ms, until));
    }
  }
}

/** State that is kept from page to page. */
interface FeedState {
  recentCursors: RecentCursors;
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
  readonly catchUp: CatchUpReporter;
  readonly stuck: StuckReporter;
  deadEnd: DeadEnd | null;
  /** The position that the last committed page led to. */
  at: Position;
}

/** Commits pages in order from a position on, until one leads no further. */
async function readFrom(
  start: Position,
  lease: LeaseGrant,
  context: LeaderContext,
  state: FeedState,
  signal: AbortSignal,
  onCommitted: (page: CompletedPage) => void,
): Promise<PageProgress> {
  const options = { priority: 'feed', maxJoined: MAX_JOINED_PAGES, deadEnd: state.deadEnd } as const;
  const pages = prefetchPages(start, options, context, signal);
  // The database has lost commits, or another writer moved the feed: a cursor may return without a circle.
  if (start.cursor !== state.at.cursor) state.recentCursors = createRecentCursors();
  state.at = start;
  const store = (page: CompletedPage, before: Promise<PageResult> | null) => {
    const { filters } = context.identity;
    const { breaker, recentCursors, deadEnd } = state;
    return storeFeedPage(page, { ...context, filters, lease, breaker, recentCursors, deadEnd, before }, signal);
  };
  const storeAndReport = async (page: CompletedPage, before: Promise<PageResult> | null): Promise<PageResult> => {
    const result = await store(page, before);
    pages.release();
    if (result.progress === 'fenced') return result;
    state.deadEnd = result.deadEnd;
    state.at = { ...state.at, cursor: page.next ?? state.at.cursor };
    onCommitted(page);
    await reportStored(page, result.progress, state, context.observer);
    return result;
  };
  try {
    return await storeInOrder(pages, storeAndReport, context, state.refusals.accepted).finally(pages.close);
  } catch (error) {
    if (!state.refusals.isPersistent(state.at.cursor, error)) throw error;
    await recoverCursor(error, state.at, lease, context, signal);
    state.recentCursors = createRecentCursors(); // a cursor may return now without a circle
    throw new CursorReplaced('the feed', error, context.pollIntervalMs);
  }
}

/**
 * Stores pages in order until one leads no further, and returns what follows it. While the database writes a page, it reads the
 * values of the next one, if both are ordinary ones.
 */
async function storeInOrder(
  pages: ReadAhead,
  store: (page: CompletedPage, before: Promise<PageResult> | null) => Promise<PageResult>,
  { observer, stepMs, maxPageCommits }: LeaderContext,
  onRead: () => void,
): Promise<PageProgress> {
  /** The pages that are being stored, in order. */
  const storing: Promise<PageResult>[] = [];
  /** Waits until at most so many are being stored. Returns what follows those that were. */
  const untilAtMost = async (count: number): Promise<PageProgress> => {
    let progress: PageProgress = 'more';
    while (progress === 'more' && storing.length > count)
      ({ progress } = await (storing.shift() as Promise<PageResult>));
    return progress;
  };
  let isOrdinary = false;
  try {
    for (;;) {
      observer.ticked(stepMs);
      const earlier = await untilAtMost(maxPageCommits - 1);
      if (earlier !== 'more') return earlier;
      const page = await nextPage(pages, storing);
      const wasOrdinary = isOrdinary;
      isOrdinary = page !== null && isJoinable(page);
      const progress = wasOrdinary && isOrdinary ? 'more' : await untilAtMost(0);
      if (page === null || progress !== 'more') return progress;
      onRead();
      const stored = store(page, storing.at(-1) ?? null);
      // No further page is needed then.
      stored.then(({ progress }) => progress !== 'more' && pages.stop(), pages.stop);
      storing.push(stored);
    }
  } finally {
    await Promise.allSettled(storing);
  }
}

/** Returns the next page; null if there is none, or none is needed after one of those being stored. */
async function nextPage(pages: ReadAhead, storing: readonly Promise<PageResult>[]): Promise<CompletedPage | null> {
  try {
    return await pages.next();
  } catch (error) {
    // What happened to the pages before comes first.
    for (const stored of storing) if ((await stored).progress !== 'more') return null;
    throw error;
  }
}

async function reportStored(
  page: CompletedPage,
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
function reportPolls({ polls }: CompletedPage, progress: PageProgress, observer: SyncObserver) {
  polls.forEach(({ items }, index) => {
    const last = index === polls.length - 1;
    const outcome = last && (progress === 'end' || progress === 'stuck') ? progress : items > 0 ? 'entries' : 'skipped';
    observer.polled(outcome, items);
  });
}
