import { type BackfillContext, type BackfillMemory, readBackfillPages, rememberBackfill } from './backfill-pages.js';
import type { LeaderContext } from './context.js';
import { CursorReplaced } from './cursor-replaced.js';
import type { FeedPauses } from './feed-pauses.js';
import type { Backfill, LeaseGrant, Position } from './ports.js';
import { readServiceDate } from './probe.js';
import { isSameOrganization, listedFrom, overlapBefore, positionWithin } from './recover-cursor.js';
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

export function createBackfillWork(lease: LeaseGrant, context: BackfillContext, pauses: FeedPauses): BackfillWork {
  const { observer, store } = context;
  /** By id: one that gave way is gone on with. */
  const memories = new Map<string, BackfillMemory>();
  let reading: Backfill | null = null;

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
    const refused = stored.cursor !== null && stored.cursor === current.rejected?.cursor ? current.rejected : null;
    current.rejected = refused;
    const start = refused
      ? await startWithoutCursor(stored, refused.refusal, context, signal)
      : { cursor: stored.cursor, since: stored.since };
    const read = (until: AbortSignal) => readBackfillPages(start, current, lease, context, pauses, until);
    const outcome = await (stored.kind === 'history'
      ? unlessAskedFor(read, lease.feed, context, signal)
      : read(signal));
    if (outcome === 'rejected') {
      throw new CursorReplaced('a backfill', current.rejected?.refusal, context.pollIntervalMs);
    }
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
