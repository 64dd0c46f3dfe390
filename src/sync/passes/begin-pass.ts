import { RECENT_PASS_OVERLAP_MS } from '../../core/recent-pass.js';
import type { FeedContext } from '../context.js';
import { readServiceDate } from '../page/probe.js';
import { isServiceClockOff, SERVICE_TIME_ERROR_MS } from '../page/service-clock.js';
import type { LastPass, LeaseGrant, NewPass, Pass } from '../ports/index.js';

/**
 * Minimum and maximum pause before the store is asked again when the last pass ended, milliseconds. A failover may lose the record of
 * the last pass.
 */
const ASK_EVERY_MS = { least: 10_000, most: 600_000 };

/** Begins recent or full passes when they are due; null if the settings say never. */
export function createPassStarter(kind: NewPass['kind'], lease: LeaseGrant, context: FeedContext) {
  const { store, clock } = context;
  const { reconcile } = context.settings;
  const intervalMs = kind === 'full' ? reconcile.fullIntervalMs : reconcile.intervalMs;
  if (intervalMs === null) return null;
  let askAt = Number.NEGATIVE_INFINITY;
  /** Returns whether one may be due. */
  const mayBeDue = () => clock.monotonic() >= askAt;
  /** Begins a pass. Returns null if none is due, or the feed has not reached its end. */
  const beginDue = async (signal: AbortSignal) => {
    if (!mayBeDue()) return null;
    const last = await store.readLastPass(lease.feed, kind);
    const pauseMs = timeUntilDue(kind, last, intervalMs);
    const begun = pauseMs > 0 ? null : await beginNow(kind, last, lease, context, signal);
    // Not postponed after a failure: a call that queries nothing would count as a recovery.
    const least = Math.min(ASK_EVERY_MS.least, intervalMs);
    askAt = clock.monotonic() + Math.min(Math.max(pauseMs, least), ASK_EVERY_MS.most);
    return begun;
  };
  return { mayBeDue, beginDue };
}

/** Begins a pass. Null if the feed has not reached its end. */
async function beginNow(
  kind: NewPass['kind'],
  last: LastPass | null,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<Pass | null> {
  const { store, clock, settings } = context;
  if (!(await store.readStatus(lease.feed)).endReached) return null;
  const probe = { filters: settings.identity.filters, start: { since: new Date(clock.now()) } };
  const sentAt = clock.monotonic();
  const serviceDate = await readServiceDate(probe, 'background', context, signal);
  const answeredAt = clock.monotonic();
  const now = clock.now();
  const serviceTime = isServiceClockOff(serviceDate, now) ? serviceDate.getTime() : now; // at `answeredAt`
  const { lagMs, dataCompleteAsOf } = await store.readStatus(lease.feed);
  if (lagMs === null || dataCompleteAsOf === null) return null;
  // The pass ends at the time up to which the feed is complete: an entry that is missing before it was skipped. The lag was
  // measured before its response was received, so this is too early only by the error of the service's time. The pass claims less
  // by that error: a later end could count entries as skipped that the cursor would have read.
  const until = new Date(serviceTime + clock.monotonic() - answeredAt - lagMs);
  // Not after the end of the last one, so that a pause leaves no gap.
  const lastEnd = last?.completedUntil?.getTime() ?? Number.POSITIVE_INFINITY;
  const recentStart = Math.min(until.getTime() - settings.reconcile.windowMs, lastEnd) - RECENT_PASS_OVERLAP_MS;
  const since = kind === 'full' ? null : new Date(recentStart);
  const errorMs = SERVICE_TIME_ERROR_MS + answeredAt - sentAt;
  return store.beginPass(lease, { kind, since, until, completeAsOf: new Date(dataCompleteAsOf.getTime() - errorMs) });
}

/** Milliseconds until a pass may be due. The initial sync counts as a full pass, so none is due before it. */
function timeUntilDue(kind: NewPass['kind'], last: LastPass | null, intervalMs: number): number {
  // If it ended in the future, the clock of the database was set back.
  if (last !== null) return last.endedMsAgo < 0 ? 0 : Math.max(0, intervalMs - last.endedMsAgo);
  return kind === 'recent' ? 0 : intervalMs;
}
