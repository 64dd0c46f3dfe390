import { troubleOf } from '../outcome/trouble.js';
import { type BackfillContext, type BackfillMemory, readBackfillPages, rememberBackfill } from './backfill-pages.js';
import { pauseAfter } from './backoff.js';
import type { LeaderContext } from './context.js';
import { CursorReplaced } from './cursor-replaced.js';
import type { FeedPauses } from './feed-pauses.js';
import type { Backfill, LeaseGrant, Position } from './ports.js';
import { readServiceDate } from './probe.js';
import { createRecentCursors } from './recent-cursors.js';
import { isSameOrganization, listedFrom, maybeRejectedCursor, overlapBefore } from './recover-cursor.js';

/** How often it is looked whether something is asked for, at least; else as often as the feed is polled. */
const LOOK_MS = 5_000;

/**
 * Reads stretches of the feed beside it: the history of a feed that began with its new runs, and what was asked for. Each
 * has a durable position of its own and goes on where the last process left off; none can move the feed's cursor. Ends when
 * the lease is lost or the signal aborts.
 */
export async function workOffBackfills(
  lease: LeaseGrant,
  context: LeaderContext,
  pauses: FeedPauses,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store } = context;
  const work = createBackfillWork(lease, context, pauses);
  let failures = 0;
  while (!signal.aborted) {
    try {
      const outcome = await work.next(signal);
      if (failures > 0) observer.recovered('backfill', failures);
      failures = 0;
      if (outcome === 'fenced' && !(await store.renewLease(lease, context.leaseTtlMs))) break;
      if (outcome === 'nothing') await clock.sleep(Math.min(LOOK_MS, context.pollIntervalMs), signal);
      if (outcome === 'stuck') await clock.sleep(context.pollIntervalMs, signal);
    } catch (error) {
      if (signal.aborted) break;
      failures += 1;
      const pauseMs = pauseAfter(failures, troubleOf(error), clock.random());
      observer.failed('backfill', error, failures, pauseMs);
      await context.waitOut(error, pauseMs, signal);
    }
  }
  work.leave();
}

/** What came of one turn; `nothing`: there was nothing to read. */
export type BackfillTurn = 'read' | 'stuck' | 'fenced' | 'nothing';

/** The work of whoever reads a feed's backfills. */
export interface BackfillWork {
  /** Reads for a while. Rejects with a `Trouble`, or with the signal's reason; the next turn goes on where the store stands. */
  next(signal: AbortSignal): Promise<BackfillTurn>;
  /** Nothing is being read any more. */
  leave(): void;
}

export function createBackfillWork(lease: LeaseGrant, context: BackfillContext, pauses: FeedPauses): BackfillWork {
  const { observer, store } = context;
  let memory: BackfillMemory | null = null;
  /** The cursor that was refused last. */
  let rejected: string | null = null;

  const leave = () => {
    if (memory !== null) observer.reading(memory.backfill.kind, null);
    memory = null;
  };
  /** What is stored counts, whatever is remembered. */
  const recall = (stored: Backfill): BackfillMemory => {
    if (memory?.backfill.id !== stored.id) leave();
    memory ??= rememberBackfill(stored);
    memory.backfill = stored;
    return memory;
  };
  const next = async (signal: AbortSignal): Promise<BackfillTurn> => {
    const stored = await store.nextBackfill(lease.feed);
    if (stored === null) {
      leave();
      return 'nothing';
    }
    const current = recall(stored);
    const refused = stored.cursor !== null && stored.cursor === rejected;
    const start = refused
      ? await startWithoutCursor(stored, context, signal)
      : { cursor: stored.cursor, since: stored.since };
    if (refused) current.recent = createRecentCursors(); // what is read again is no circle
    const outcome = await readBackfillPages(start, current, lease, context, pauses, signal).catch((error) => {
      const { cursor } = current.backfill;
      if (!maybeRejectedCursor(error, { cursor, since: null }) || (refused && cursor === rejected)) throw error;
      rejected = cursor;
      throw new CursorReplaced('a backfill', context.pollIntervalMs);
    });
    rejected = null;
    if (outcome === 'stuck' || outcome === 'fenced') return outcome;
    if (outcome === 'through') {
      observer.backfilled({ ...current.backfill, stored: current.backfill.stored + current.unnoted });
      leave();
    }
    return 'read';
  };
  return { next, leave };
}

/**
 * Where a backfill goes on whose cursor the service no longer takes: a day before what it has read, as the feed itself. If
 * that is refused too, the settings are wrong, and the refusal is thrown.
 * @throws AnotherOrganization
 */
async function startWithoutCursor(
  { since, deliveredUpTo }: Backfill,
  context: BackfillContext,
  signal: AbortSignal,
): Promise<Position> {
  if (deliveredUpTo === null) return { cursor: null, since };
  const { read, clock } = context;
  const probe = { filters: read.filters, start: { since: deliveredUpTo } };
  const serviceDate = await readServiceDate(probe, 'backfill', context, signal);
  const before = overlapBefore(deliveredUpTo, serviceDate ?? new Date(clock.now()));
  const from = since !== null && since > before ? since : before;
  const again = await listedFrom(from, 'backfill', context, signal);
  if (!(await isSameOrganization(again, from, deliveredUpTo, context, signal))) {
    throw new CursorReplaced('a backfill', context.pollIntervalMs);
  }
  return { cursor: null, since: from };
}
