import { type BackfillContext, type BackfillMemory, readBackfillPages, rememberBackfill } from './backfill-pages.js';
import type { LeaderContext } from './context.js';
import { CursorReplaced } from './cursor-replaced.js';
import type { FeedPauses } from './feed-pauses.js';
import type { Backfill, LeaseGrant, Position } from './ports.js';
import { readServiceDate } from './probe.js';
import { createRecentCursors } from './recent-cursors.js';
import { isRejected, isSameOrganization, listedFrom, overlapBefore, positionWithin } from './recover-cursor.js';
import { takeTurns } from './take-turns.js';
import { LOOK_MS, unlessAskedFor } from './unless-asked-for.js';

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
  const { store, leaseTtlMs, pollIntervalMs } = context;
  const work = createBackfillWork(lease, context, pauses);
  const pauseAfterTurn = { read: 0, fenced: 0, stuck: pollIntervalMs, nothing: Math.min(LOOK_MS, pollIntervalMs) };
  await takeTurns('backfill', context, signal, async () => {
    const outcome = await work.next(signal);
    if (outcome === 'fenced' && !(await store.renewLease(lease, leaseTtlMs))) return 'over';
    return { pauseMs: pauseAfterTurn[outcome] };
  });
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

/** A cursor that the service rejects, and the error that said so. */
interface Rejected {
  readonly cursor: string;
  readonly refusal: unknown;
}

export function createBackfillWork(lease: LeaseGrant, context: BackfillContext, pauses: FeedPauses): BackfillWork {
  const { observer, store } = context;
  /** By id: one that gave way is gone on with. */
  const memories = new Map<string, BackfillMemory>();
  let reading: Backfill | null = null;
  /** The cursor that was rejected last. */
  let rejected: Rejected | null = null;

  const pause = () => {
    if (reading !== null) observer.reading(reading.kind, null);
    reading = null;
  };
  const leave = () => {
    pause();
    memories.clear();
  };
  /** What is stored counts, whatever is remembered. */
  const recall = (stored: Backfill): BackfillMemory => {
    if (reading?.id !== stored.id) pause();
    reading = stored;
    const memory = memories.get(stored.id) ?? rememberBackfill(stored);
    memories.set(stored.id, memory);
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
    const refused = stored.cursor === rejected?.cursor ? rejected : null;
    const start = refused
      ? await startWithoutCursor(stored, refused.refusal, context, signal)
      : { cursor: stored.cursor, since: stored.since };
    if (refused) current.recent = createRecentCursors(); // what is read again is no circle
    const read = (until: AbortSignal) => readBackfillPages(start, current, lease, context, pauses, until);
    const stretch = stored.kind === 'history' ? unlessAskedFor(read, lease.feed, context, signal) : read(signal);
    const outcome = await stretch.catch(async (error) => {
      const { cursor } = current.backfill;
      if (cursor === null || !current.refusals.persist(cursor, error) || cursor === refused?.cursor) throw error;
      if (!(await isRejected(cursor, error, context, signal))) throw error;
      rejected = { cursor, refusal: error };
      throw new CursorReplaced('a backfill', error, context.pollIntervalMs);
    });
    rejected = null;
    if (outcome === 'stuck' || outcome === 'fenced') return outcome;
    if (outcome === 'end') {
      observer.backfilled(current.backfill);
      pause();
      memories.delete(stored.id);
    }
    return 'read';
  };
  return { next, leave };
}

/**
 * Where a backfill goes on whose cursor the service no longer takes: a day before what it has read, as the feed itself, or
 * at its beginning where that time may lead past entries that were not read. If that is refused too, the settings are
 * wrong, and the refusal is thrown.
 * @throws AnotherOrganization
 */
async function startWithoutCursor(
  { since, deliveredUpTo }: Backfill,
  refusal: unknown,
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
    throw new CursorReplaced('a backfill', refusal, context.pollIntervalMs);
  }
  return (await positionWithin(from, deliveredUpTo, 'backfill', context, signal)) ?? { cursor: null, since };
}
