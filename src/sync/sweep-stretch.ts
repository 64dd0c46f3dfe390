import type { Breaker } from './breaker.js';
import type { Room } from './byte-budget.js';
import type { LeaderContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import { type DeadEnd, pageLimitAt, reachesBeyond } from './end-of-feed.js';
import type { CommitCounts, LeaseGrant, Position, SweepState, SyncObserver } from './ports.js';
import { readPageWithin } from './read-page.js';
import { createRecentCursors } from './recent-cursors.js';
import { isRejected } from './recover-cursor.js';
import type { CursorRefusals } from './rejected-cursor.js';
import { type PageProgress, storePage } from './store-page.js';

/** A full sweep is in no hurry: this pause after each page leaves service and database to others. */
const FULL_SWEEP_PAUSE_MS = 1_000;
/** After this long a turn ends: a full sweep lets the window have its own, and failures of before are over. */
const STRETCH_MS = 60_000;

/**
 * `end`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the
 * lease was lost, or the sweep's stored position is not the expected one.
 */
export type SweepProgress = Exclude<PageProgress, 'unclear'>;

/** A sweep under way, and what is remembered of its last pages. */
export interface Sweep extends SweepState {
  readonly memory: {
    readonly breaker: Breaker;
    readonly refusals: CursorRefusals;
    /** Where the last page led nowhere. */
    deadEnd: DeadEnd | null;
  };
}

/**
 * Reads a sweep's pages from where it stands, and stores what is missing. Its position is kept with every page.
 * @throws MostlyBad
 */
export async function sweepStretch(
  sweep: Sweep,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<SweepProgress> {
  const { clock, budget } = context;
  const { refusals } = sweep.memory;
  const begunAt = clock.monotonic();
  let at: Position = { cursor: sweep.cursor, since: sweep.since };
  const recent = createRecentCursors();
  let stored = sweep.cursor;
  let restarted = false;
  while (!signal.aborted) {
    const room = budget.open('sweep');
    const swept = await sweepPage(at, room, { ...sweep, cursor: stored }, lease, context, signal)
      .catch(async (error) => {
        // Its cursor may be rejected like the feed's: it starts over, once, which costs only time.
        if (restarted || at.cursor === null || !refusals.persist(at.cursor, error)) throw error;
        if (!(await isRejected(at.cursor, error, context, signal))) throw error;
        return null;
      })
      .finally(room.close);
    if (swept === null) {
      restarted = true;
      at = { ...at, cursor: null };
      continue;
    }
    refusals.accepted();
    if (swept.progress !== 'more') return swept.progress;
    if (recent.seen(swept.next)) return 'stuck';
    stored = swept.next;
    at = { ...at, cursor: stored };
    if (clock.monotonic() - begunAt > STRETCH_MS) return 'more';
    if (sweep.kind === 'full') await clock.sleep(FULL_SWEEP_PAUSE_MS, signal);
  }
  return 'more';
}

/** Where a page leaves its sweep. */
interface Swept {
  readonly next: string | null;
  readonly progress: SweepProgress;
}

async function sweepPage(
  at: Position,
  room: Room,
  sweep: Sweep,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Swept> {
  const { memory, kind, id, until } = sweep;
  const { store, loader, observer, read } = context;
  const pageLimit = pageLimitAt(at, memory.deadEnd, context.pageLimit);
  const page = await readPageWithin(room, { ...context, pageLimit }, at, signal);
  await requireFeedCursor(page, lease, context, signal);
  const { entries } = page.draft;
  const wanted = entries.filter(({ accepted: { run } }) => run.deliveredAt === null || run.deliveredAt <= until);
  const completed = await loader.completePage({ ...page.draft, entries: wanted }, room, signal);
  const { progress, deadEnd } = await storePage(
    { ...page, completed },
    reachesBeyond(page, until),
    {
      ...context,
      ...{ lease, filters: read.filters, breaker: memory.breaker, stored: sweep.cursor, deadEnd: memory.deadEnd },
      commit: (content, { from, to, atEnd }) =>
        store.commitSweep({ ...{ lease, kind, id, from, to, finished: atEnd }, ...content }),
      onCommitted: ({ counts }) => report(counts, observer),
    },
    signal,
  );
  memory.deadEnd = deadEnd;
  return { next: page.next, progress: progress === 'unclear' ? 'stuck' : progress };
}

function report(counts: CommitCounts, observer: SyncObserver): void {
  observer.committed(counts, []);
  const found = foundOf(counts);
  if (found.first + found.later > 0) observer.reconciled(found);
}

/** What the cursor passed by: a revision that was stored, and only lacked something, is not among it. */
function foundOf({ inserted, updated, filled }: CommitCounts): { first: number; later: number } {
  return { first: inserted, later: updated - filled };
}
