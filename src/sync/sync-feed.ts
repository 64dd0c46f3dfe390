import { classifyError } from '../core/errors.js';
import type { FeedContext, LeaderContext } from './context.js';
import { FeedPages } from './feed-pages.js';
import { keepLease } from './lease/keep-lease.js';
import { takeLease } from './lease/take-lease.js';
import { createUnfinishedWork } from './lease/unfinished-work.js';
import { tickWhileWaiting } from './memory/tick-while-waiting.js';
import { createPageLimit } from './page/page-limit.js';
import { runPasses } from './passes/run-passes.js';
import type { LeaseGrant, Position } from './ports/index.js';
import { retryPending } from './results/retry-pending.js';
import { pauseAfter, pauseUntilDue } from './retry/backoff.js';
import { createFailurePauses } from './retry/failure-pauses.js';
import { createIdleGate, type IdleGate } from './waiting/idle-gate.js';
import { linkedSignal } from './waiting/linked-signal.js';
import { createWakeUp } from './waiting/wake-up.js';

/**
 * Keeps the database in step with a feed until the signal aborts. Waits while another process leads it. While this process leads it,
 * runs four tasks: it reads the state of the feed, reads the feed, runs passes and retries pending results. Never rejects; it retries
 * after failures.
 * @param admit rejects while the feed does not belong in its schema
 */
export async function syncFeed(
  feedContext: FeedContext,
  signal: AbortSignal,
  admit: (signal: AbortSignal) => Promise<void> = async () => {},
): Promise<void> {
  const { clock, budget, observer, settings } = feedContext;
  const { identity, markdown, pageSize } = settings;
  const context: LeaderContext = {
    ...feedContext,
    read: { filters: identity.filters, markdown, limit: createPageLimit(pageSize, budget.bytes, observer.pageLimited) },
    recovery: createFailurePauses(clock, feedContext.service),
    retryWakeUp: createWakeUp(clock),
  };
  const { leases } = context;
  const { name } = identity;
  leases.follow(name);
  try {
    while (!signal.aborted) {
      const lease = await takeLease(context, signal, admit);
      if (lease !== null) await lead(lease, context, signal);
    }
  } finally {
    leases.unfollow(name);
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
      readFeed(lease, tickWhileWaiting(context), idle, held.signal).finally(held.abort),
      runPasses(lease, context, work, idle, held.signal).finally(held.abort),
      retryPending(lease, context, work, held.signal).finally(held.abort),
    ]);
  } finally {
    held.abort();
    held.unlink();
    context.observer.leading(null);
    context.observer.caughtUp(null);
    context.observer.reading('feed', null);
    await context.leases.release(lease.feed);
  }
}

/** Reads the feed page by page, and pauses at its end and after failures. Resolves when the signal aborts. */
async function readFeed(lease: LeaseGrant, context: LeaderContext, idle: IdleGate, signal: AbortSignal): Promise<void> {
  const { clock, observer, store, leases } = context;
  const { pollIntervalMs } = context.settings;
  let failures = 0;
  let fences = 0;
  let polledAt = clock.monotonic();
  const pages = new FeedPages(lease, context, (page) => {
    polledAt = page.polledAt;
    if (failures > 0) observer.recovered('feed');
    failures = 0;
    fences = 0;
  });
  /**
   * The position to continue from; null: read the stored one. Kept between polls, because the fence rejects a commit from any other
   * cursor.
   */
  let position: Position | null = null;
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
      const next = await pages.readFrom(start, signal);
      if (next === 'fenced') {
        // Either the lease was lost, which the next read of the feed finds, or another writer moved the position, which is read again.
        leases.readEarly();
        fences += 1;
        await pause(pauseAfter(fences, { action: 'retry' }, clock.random()));
        continue;
      }
      if (pages.at.cursor !== null) position = pages.at; // without a cursor, the fence would not notice another `since`
      // Otherwise the page had no entries, and its cursor moved: there may be more at once.
      if (next !== 'more') await pause(pauseUntilDue(pollIntervalMs, clock.monotonic() - polledAt));
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, pauseMs);
      await pause(pauseMs, (ms, until) => context.recovery.pauseAfterFailure(error, ms, until));
    }
  }
}
