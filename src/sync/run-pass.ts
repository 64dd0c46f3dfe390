import { type Breaker, createBreaker } from './breaker.js';
import type { Line } from './byte-budget.js';
import type { FeedContext, LeaderContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import type { DeadEnd } from './end-of-feed.js';
import { openAhead } from './open-ahead.js';
import type { LeaseGrant, Position } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import { createRecentCursors, type RecentCursors } from './recent-cursors.js';
import { isRejected } from './recover-cursor.js';
import { type CursorRefusals, createCursorRefusals } from './rejected-cursor.js';
import type { PageProgress, StoredPage } from './store-page.js';

/** The parts of the engine that a sweep or a backfill needs. */
export type PassContext = Pick<
  FeedContext,
  'service' | 'store' | 'clock' | 'loader' | 'read' | 'budget' | 'pageLimit'
> &
  Pick<LeaderContext, 'retryWakeUp'>;

/** State of a sweep or a backfill that is kept from slice to slice. */
export interface PassMemory {
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
  recent: RecentCursors;
  /** The position that the last page led to. */
  reached: string | null;
  /** Where the page before led nowhere. */
  deadEnd: DeadEnd | null;
  /** The stored cursor, once the service rejects it, and the error that said so. */
  rejected: { readonly cursor: string; readonly refusal: unknown } | null;
}

export function createPassMemory(): PassMemory {
  return {
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    recent: createRecentCursors(),
    reached: null,
    deadEnd: null,
    rejected: null,
  };
}

/** One slice of a sweep or a backfill. */
export interface PassSlice {
  readonly memory: PassMemory;
  readonly line: Extract<Line, 'sweep' | 'backfill'>;
  /** Pages held at once, the one being committed included. */
  readonly pagesAhead: number;
  /** The position that is stored. */
  readonly stored: string | null;
  /** The position to continue from: the stored one, unless its cursor is rejected. */
  readonly start: Position;
  /** Maximum duration, milliseconds. The next slice continues from the stored position. */
  readonly sliceMs: number;
  /** Pause after each page, milliseconds. */
  readonly pauseMs: number;
  /** Resolves when a page may be stored. */
  readonly waitForTurn: (signal: AbortSignal) => Promise<void>;
  /** Stores a page with its position. */
  readonly storePage: (page: CompletedPage, stored: string | null, signal: AbortSignal) => Promise<StoredPage>;
}

/**
 * `end`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `rejected`: the
 * service rejects its cursor, and the next slice continues without it; `fenced`: the lease was lost, or another position is stored.
 */
export type PassResult = Exclude<PageProgress, 'unclear'> | 'rejected';

/**
 * Reads and stores the pages of a sweep or a backfill, each with the position after it, for one slice.
 * @throws MostlyBad
 */
export async function runPass(
  { memory, line, pagesAhead, start, sliceMs, pauseMs, waitForTurn, storePage, ...slice }: PassSlice,
  lease: LeaseGrant,
  context: PassContext,
  signal: AbortSignal,
): Promise<PassResult> {
  const { clock } = context;
  const ahead = openAhead(start, { line, maxJoined: 1, deadEnd: memory.deadEnd }, { ...context, pagesAhead }, signal);
  const begunAt = clock.monotonic();
  let { stored } = slice;
  // The database has lost commits, or another writer moved it: what is read again is no circle.
  if (stored !== memory.reached) memory.recent = createRecentCursors();
  try {
    while (clock.monotonic() - begunAt < sliceMs) {
      const page = await ahead.next();
      if (page === null) return 'more';
      memory.refusals.accepted();
      await waitForTurn(signal);
      signal.throwIfAborted();
      await requireFeedCursor(page, lease, context, signal);
      const { progress, deadEnd } = await storePage(page, stored, signal);
      if (progress === 'fenced') return progress;
      memory.rejected = null;
      memory.deadEnd = deadEnd;
      stored = page.next ?? page.at.cursor;
      memory.reached = stored;
      if (progress === 'unclear') return 'stuck';
      if (progress === 'more' && memory.recent.seen(page.next)) {
        memory.recent = createRecentCursors(); // after the pause it may go round once more
        return 'stuck';
      }
      if (progress !== 'more') return progress;
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
    }
    return 'more';
  } catch (error) {
    if (stored === null || memory.rejected !== null || !memory.refusals.persist(stored, error)) throw error;
    if (!(await isRejected(stored, error, context, signal))) throw error;
    memory.rejected = { cursor: stored, refusal: error };
    memory.recent = createRecentCursors(); // what is read again is no circle
    return 'rejected';
  } finally {
    ahead.stop();
  }
}
