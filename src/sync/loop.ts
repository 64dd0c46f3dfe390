import { classifyError } from '../core/errors.js';
import { createFeedProgress, type FeedProgress } from './commit/feed-progress.js';
import type { PageProgress } from './commit/store-page.js';
import { syncPage } from './commit/sync-page.js';
import type { FeedContext, LeaderContext } from './context.js';
import { keepLease } from './lease/keep-lease.js';
import { takeLease } from './lease/take-lease.js';
import type { DeadEnd } from './page/end-of-feed.js';
import { createRecentCursors, type RecentCursors } from './page/recent-cursors.js';
import { runPasses } from './passes/run-passes.js';
import type { LeaseGrant, Position, SyncObserver } from './ports/index.js';
import type { CompletedPage } from './prefetch/completed-page.js';
import { PAGES_JOINED } from './prefetch/join-pages.js';
import { openAhead } from './prefetch/open-ahead.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { type CursorRefusals, CursorReplaced, createCursorRefusals } from './recovery/rejected-cursor.js';
import { createStuckNote, type StuckNote } from './recovery/stuck-note.js';
import { retryPending } from './results/retry-pending.js';
import { createRetryWakeUp } from './results/retry-wake-up.js';
import { pauseAfter, pauseUntilPoll } from './retry/backoff.js';
import { type Breaker, createBreaker } from './retry/breaker.js';
import { watchDatabase } from './retry/database-watch.js';
import { createIdleGate, type IdleGate } from './retry/idle-gate.js';
import { linkedSignal } from './retry/linked-signal.js';

/**
 * Follows a feed until the signal aborts. Waits while another process holds its lease. With the lease it runs four tasks
 * until the lease is lost: it renews the lease, reads the feed, runs passes and retries pending results. Never rejects:
 * outages are waited out.
 */
export async function followFeed(given: FeedContext, signal: AbortSignal): Promise<void> {
  const retryWakeUp = createRetryWakeUp(given.clock);
  const context: LeaderContext = { ...given, ...watchDatabase(given.store, given.clock), retryWakeUp };
  for (let starting = true; !signal.aborted; starting = false) {
    const lease = await takeLease(context, signal, starting);
    if (lease === null) return;
    const held = linkedSignal(signal);
    const idle = createIdleGate();
    try {
      await Promise.all([
        keepLease(lease, context, held.signal).finally(held.abort),
        syncPages(lease, context, idle, held.signal).finally(held.abort),
        runPasses(lease, context, idle, held.signal).finally(held.abort),
        retryPending(lease, context, held.signal).finally(held.abort),
      ]);
    } finally {
      held.abort();
      held.unlink();
      await releaseLease(context, lease);
    }
  }
}

/** Best effort: a lease that cannot be released expires. */
async function releaseLease({ store, observer }: FeedContext, lease: LeaseGrant) {
  observer.leading(null);
  observer.caughtUp(null);
  observer.reading('feed', null);
  await store.releaseLease(lease).catch(() => {});
}

/** Follows the feed page by page while the lease is ours. Resolves when it is lost or the signal aborts. */
async function syncPages(
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store, pollIntervalMs } = context;
  const progress = createFeedProgress(lease, context);
  const stuck = createStuckNote(lease, context);
  const refusals = createCursorRefusals();
  const notes = { refusals, progress, stuck };
  const memory = { recent: createRecentCursors(), breaker: createBreaker(), ...notes, deadEnd: null, cursor: null };
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
      const reached = await syncFrom(start, lease, context, memory, signal, (page) => {
        polledAt = page.polledAt;
        if (failures > 0) observer.recovered('feed', failures);
        failures = 0;
      });
      if (reached === 'fenced' && !(await store.renewLease(lease, context.leaseTtlMs))) return;
      if (reached !== 'more' && reached !== 'fenced') {
        await pause(pauseUntilPoll(pollIntervalMs, clock.monotonic() - polledAt));
      }
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, failures, pauseMs);
      await pause(pauseMs, (ms, until) => context.waitOut(error, ms, until));
    }
  }
}

/** State that is kept from page to page. */
interface PageMemory {
  recent: RecentCursors;
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
  readonly progress: FeedProgress;
  readonly stuck: StuckNote;
  deadEnd: DeadEnd | null;
  /** The cursor that the last committed page led to. */
  cursor: string | null;
}

/** Commits pages in order from a position on, until one leads no further. */
async function syncFrom(
  start: Position,
  lease: LeaseGrant,
  context: LeaderContext,
  memory: PageMemory,
  signal: AbortSignal,
  onCommitted: (page: CompletedPage) => void,
): Promise<PageProgress> {
  const { observer } = context;
  const pageContext = { ...context, filters: context.identity.filters, lease, breaker: memory.breaker };
  const ahead = openAhead(
    start,
    { priority: 'feed', maxJoined: PAGES_JOINED, deadEnd: memory.deadEnd },
    context,
    signal,
  );
  let at = start;
  // The database has lost commits, or another writer moved the feed: a cursor that returns then is no circle.
  if (start.cursor !== memory.cursor) memory.recent = createRecentCursors();
  try {
    for (;;) {
      observer.ticked(context.stepMs);
      const page = await ahead.next();
      if (page === null) return 'more';
      memory.refusals.accepted();
      const { recent } = memory;
      const { progress, deadEnd } = await syncPage(page, { ...pageContext, recent, deadEnd: memory.deadEnd }, signal);
      if (progress === 'fenced') return progress;
      memory.deadEnd = deadEnd;
      onCommitted(page);
      at = { ...at, cursor: page.next ?? at.cursor };
      memory.cursor = at.cursor;
      reportPolls(page, progress, observer);
      observer.caughtUp(progress === 'end' ? page.polledAt : null);
      if (progress === 'more') await memory.progress.passed(page);
      else await memory.progress.over();
      await memory.stuck.reached(progress === 'stuck');
      if (progress !== 'more') return progress;
    }
  } catch (error) {
    if (!memory.refusals.isPersistent(at.cursor, error)) throw error;
    await recoverCursor(error, at, lease, context, signal);
    memory.recent = createRecentCursors(); // a cursor that returns now is no circle
    throw new CursorReplaced('the feed', error, context.pollIntervalMs);
  } finally {
    ahead.stop();
  }
}

/** The last poll has the outcome of the page; those before it brought entries. */
function reportPolls({ polls }: CompletedPage, reached: PageProgress, observer: SyncObserver) {
  polls.forEach(({ items }, index) => {
    const last = index === polls.length - 1;
    const outcome = last && (reached === 'end' || reached === 'stuck') ? reached : items > 0 ? 'entries' : 'skipped';
    observer.polled(outcome, items);
  });
}
