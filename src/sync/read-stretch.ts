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

/** What reading beside the feed needs of the engine. */
export type StretchContext = Pick<
  FeedContext,
  'service' | 'store' | 'clock' | 'loader' | 'read' | 'budget' | 'pageLimit'
> &
  Pick<LeaderContext, 'retryWakeUp'>;

/** What is remembered of a sweep or a backfill from turn to turn. */
export interface StretchMemory {
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

export function createStretchMemory(): StretchMemory {
  return {
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    recent: createRecentCursors(),
    reached: null,
    deadEnd: null,
    rejected: null,
  };
}

/** A sweep or a backfill for one turn. */
export interface Stretch {
  readonly memory: StretchMemory;
  readonly line: Extract<Line, 'sweep' | 'backfill'>;
  /** Pages held at once, the one being committed included. */
  readonly pagesAhead: number;
  /** The position that is stored. */
  readonly stored: string | null;
  /** Where it goes on: at the stored position, unless its cursor is rejected. */
  readonly start: Position;
  /** The turn ends after this time, and with it what failed before; the next goes on from where the store stands. */
  readonly turnMs: number;
  /** Leaves service and database to others, after each page. */
  readonly pauseMs: number;
  /** Resolves when a page may be stored. */
  readonly isItsTurn: (signal: AbortSignal) => Promise<void>;
  /** Stores a page with its position. */
  readonly storePage: (page: CompletedPage, stored: string | null, signal: AbortSignal) => Promise<StoredPage>;
}

/**
 * `end`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `rejected`: the
 * service rejects its cursor, and the next turn goes on without; `fenced`: the lease was lost, or another position is stored.
 */
export type StretchOutcome = Exclude<PageProgress, 'unclear'> | 'rejected';

/**
 * Reads pages beside the feed and stores each with the position behind it.
 * @throws MostlyBad
 */
export async function readStretch(
  { memory, line, pagesAhead, start, turnMs, pauseMs, isItsTurn, storePage, ...stretch }: Stretch,
  lease: LeaseGrant,
  context: StretchContext,
  signal: AbortSignal,
): Promise<StretchOutcome> {
  const { clock } = context;
  const ahead = openAhead(start, { line, maxJoined: 1, deadEnd: memory.deadEnd }, { ...context, pagesAhead }, signal);
  const begunAt = clock.monotonic();
  let { stored } = stretch;
  // The database has lost commits, or another writer moved it: what is read again is no circle.
  if (stored !== memory.reached) memory.recent = createRecentCursors();
  try {
    while (clock.monotonic() - begunAt < turnMs) {
      const page = await ahead.next();
      if (page === null) return 'more';
      memory.refusals.accepted();
      await isItsTurn(signal);
      signal.throwIfAborted();
      await requireFeedCursor(page, lease, context, signal);
      const { progress, deadEnd } = await storePage(page, stored, signal);
      if (progress === 'fenced') return progress;
      memory.rejected = null;
      memory.deadEnd = deadEnd;
      stored = page.next ?? page.at.cursor;
      memory.reached = stored;
      if (progress === 'unclear' || (progress === 'more' && memory.recent.seen(page.next))) return 'stuck';
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
