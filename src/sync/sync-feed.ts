import type { FeedContext, LeaderContext } from './context.js';
import { keepLease } from './lease/keep-lease.js';
import { takeLease } from './lease/take-lease.js';
import { createUnfinishedWork } from './lease/unfinished-work.js';
import { tickWhileWaiting } from './memory/tick-while-waiting.js';
import { runPasses } from './passes/run-passes.js';
import type { LeaseGrant } from './ports/index.js';
import { readFeed } from './read-feed.js';
import { retryPending } from './results/retry-pending.js';
import { createDatabaseRecovery } from './retry/database-recovery.js';
import { createIdleGate } from './waiting/idle-gate.js';
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
  const { clock } = feedContext;
  const context: LeaderContext = {
    ...feedContext,
    recovery: createDatabaseRecovery(clock),
    retryWakeUp: createWakeUp(clock),
  };
  const { leases } = context;
  const { name } = context.settings.identity;
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
