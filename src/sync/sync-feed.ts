import { classifyError } from '../core/errors.js';
import { type CatchUpReporter, createCatchUpReporter } from './commit/catch-up-reporter.js';
import { storeFeedPage } from './commit/store-feed-page.js';
import type { PageProgress } from './commit/store-page.js';
import type { FeedContext, LeaderContext } from './context.js';
import { keepLease } from './lease/keep-lease.js';
import { takeLease } from './lease/take-lease.js';
import { createUnfinishedWork } from './lease/unfinished-work.js';
import type { DeadEnd } from './page/end-of-feed.js';
import { createRecentCursors, type RecentCursors } from './page/recent-cursors.js';
import { runPasses } from './passes/run-passes.js';
import type { LeaseGrant, Position, SyncObserver } from './ports/index.js';
import type { CompletedPage } from './prefetch/completed-page.js';
import { MAX_JOINED_PAGES } from './prefetch/join-pages.js';
import { prefetchPages } from './prefetch/prefetch-pages.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { type CursorRefusals, CursorReplaced, createCursorRefusals } from './recovery/rejected-cursor.js';
import { createStuckReporter, type StuckReporter } from './recovery/stuck-reporter.js';
import { retryPending } from './results/retry-pending.js';
import { createRetryWakeUp } from './results/retry-wake-up.js';
import { pauseAfter, pauseUntilPoll } from './retry/backoff.js';
import { type Breaker, createBreaker } from './retry/breaker.js';
import { watchDatabase } from './retry/database-watch.js';
import { createIdleGate, type IdleGate } from './retry/idle-gate.js';
import { linkedSignal } from './retry/linked-signal.js';

/**
 * Keeps the database in step with a feed until the signal aborts. Waits while another process holds the lease. With the lease
 * it runs four tasks until the lease is lost or given back: it renews the lease, reads the feed, runs passes and retries pending results.
 * Never rejects; it retries after failures.
 */
export async function syncFeed(feedContext: FeedContext, signal: AbortSignal): Promise<void> {
  const retryWakeUp = createRetryWakeUp(feedContext.clock);
  const context: LeaderContext = {
    ...feedContext,
    ...watchDatabase(feedContext.store, feedContext.clock),
    retryWakeUp,
  };
  const { leases, identity } = context;
  leases.follow(identity.name);
  try {
    for (let starting = true; !signal.aborted; starting = false) {
      const lease = await takeLease(context, signal, starting);
      if (lease !== null) await lead(lease, context, signal);
    }
  } finally {
    await leases.unfollow(identity.name);
  }
}

/** Runs the tasks of the leader until the lease is lost or the signal aborts. */
async function lead(lease: LeaseGrant, context: LeaderContext, signal: AbortSignal): Promise<void> {
  const held = linkedSignal(signal);
  const idle = createIdleGate();
  const work = createUnfinishedWork();
  try {
    await Promise.all([
      keepLease(lease, context, work, held.signal).finally(held.abort),
      readFeed(lease, context, idle, held.signal).finally(held.abort),
      runPasses(lease, context, work, idle, held.signal).finally(held.abort),
      retryPending(lease, context, work, held.signal).finally(held.abort),
    ]);
  } finally {
    held.abort();
    held.unlink();
    context.observer.leading(null);
    context.observer.caughtUp(null);
    context.observer.reading('feed', null);
    await context.leases.release(lease);
  }
}

/** Reads the feed page by page while this process holds the lease. Resolves when it is lost or the signal aborts. */
async function readFeed(lease: LeaseGrant, context: LeaderContext, idle: IdleGate, signal: AbortSignal): Promise<void> {
  const { clock, observer, store, pollIntervalMs } = context;
  const state: FeedState = {
    recentCursors: createRecentCursors(),
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    catchUp: createCatchUpReporter(lease, context),
    stuck: createStuckReporter(lease, context),
    deadEnd: null,
    cursor: null,
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
  /** The cursor that the last committed page led to. */
  cursor: string | null;
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
  const { observer } = context;
  const pageContext = { ...context, filters: context.identity.filters, lease, breaker: state.breaker };
  const pages = prefetchPages(
    start,
    { priority: 'feed', maxJoined: MAX_JOINED_PAGES, deadEnd: state.deadEnd },
    context,
    signal,
  );
  let at = start;
  // The database has lost commits, or another writer moved the feed: a cursor may return without a circle.
  if (start.cursor !== state.cursor) state.recentCursors = createRecentCursors();
  try {
    for (;;) {
      observer.ticked(context.stepMs);
      const page = await pages.next();
      if (page === null) return 'more';
      state.refusals.accepted();
      const { recentCursors } = state;
      const { progress, deadEnd } = await storeFeedPage(
        page,
        { ...pageContext, recentCursors, deadEnd: state.deadEnd },
        signal,
      );
      if (progress === 'fenced') return progress;
      state.deadEnd = deadEnd;
      onCommitted(page);
      at = { ...at, cursor: page.next ?? at.cursor };
      state.cursor = at.cursor;
      reportPolls(page, progress, observer);
      observer.caughtUp(progress === 'end' ? page.polledAt : null);
      if (progress === 'more') await state.catchUp.pageCommitted(page);
      else await state.catchUp.stop();
      await state.stuck.report(progress === 'stuck');
      if (progress !== 'more') return progress;
    }
  } catch (error) {
    if (!state.refusals.isPersistent(at.cursor, error)) throw error;
    await recoverCursor(error, at, lease, context, signal);
    state.recentCursors = createRecentCursors(); // a cursor may return now without a circle
    throw new CursorReplaced('the feed', error, context.pollIntervalMs);
  } finally {
    pages.stop();
  }
}

/** Reports each poll of a page. The last one has the outcome of the page; those before it had entries. */
function reportPolls({ polls }: CompletedPage, progress: PageProgress, observer: SyncObserver) {
  polls.forEach(({ items }, index) => {
    const last = index === polls.length - 1;
    const outcome = last && (progress === 'end' || progress === 'stuck') ? progress : items > 0 ? 'entries' : 'skipped';
    observer.polled(outcome, items);
  });
}
