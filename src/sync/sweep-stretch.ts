import { type Breaker, qualityOf, qualityOfNew } from './breaker.js';
import type { Room } from './byte-budget.js';
import { commitPage } from './commit-page.js';
import type { LeaderContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import { type DeadEnd, findDeadEnd, isDeadEnd, isEndAfterCommit, isEndOfFeed, pageLimitAt } from './end-of-feed.js';
import type { CommitCounts, LeaseGrant, Position, SweepCommit, SweepState, SyncObserver } from './ports.js';
import { type FetchedPage, readPageWithin } from './read-page.js';
import { createRecentCursors } from './recent-cursors.js';
import { isRejected } from './recover-cursor.js';
import type { CursorRefusals } from './rejected-cursor.js';

/** A full sweep is in no hurry: this pause after each page leaves service and database to others. */
const FULL_SWEEP_PAUSE_MS = 1_000;
/** After this long a turn ends: a full sweep lets the window have its own, and failures of before are over. */
const STRETCH_MS = 60_000;

/**
 * `through`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the
 * lease was lost, or the sweep's stored position is not the expected one.
 */
export type SweepProgress = 'through' | 'more' | 'stuck' | 'fenced';

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
  const { memory, until } = sweep;
  const { service, read, store } = context;
  const pageLimit = pageLimitAt(at, memory.deadEnd, context.pageLimit);
  const page = await readPageWithin(room, { ...context, pageLimit }, at, signal);
  await requireFeedCursor(page, lease, context, signal);
  // Only the end of the feed, or a page that proves to reach beyond the stretch, ends a sweep.
  const isBeyond = page.provenUpTo !== null && page.provenUpTo > until;
  const verdict = isBeyond ? 'end' : await isEndOfFeed(page, read.filters, service, signal);
  const { next } = page;
  const committed = await commitSwept(page, room, sweep, verdict === 'end', lease, context, signal);
  if (committed === null) return { next, progress: 'fenced' };
  if (verdict === 'end') return { next, progress: 'through' };
  const before = memory.deadEnd;
  memory.deadEnd = await findDeadEnd(page, read.filters, service, signal);
  if (isEndAfterCommit(memory.deadEnd, before, committed.counts)) {
    // With what it rests on: the database may have lost the commit, and the cursor did not move.
    const outcome = await store.commitSweep({ ...committed.commit, from: committed.commit.to, finished: true });
    return { next, progress: outcome.kind === 'fenced' ? 'fenced' : 'through' };
  }
  return { next, progress: verdict === 'more' && !isDeadEnd(page) ? 'more' : 'stuck' };
}

/** Returns what was counted, and what was committed with the position; null if fenced. */
async function commitSwept(
  page: FetchedPage,
  room: Room,
  { kind, id, until, cursor: from, memory: { breaker } }: Sweep,
  finished: boolean,
  lease: LeaseGrant,
  { store, loader, observer, retryWakeUp }: LeaderContext,
  signal: AbortSignal,
): Promise<{ readonly counts: CommitCounts; readonly commit: SweepCommit } | null> {
  const { draft } = page;
  const passed = draft.entries.filter(({ accepted: { run } }) => run.deliveredAt === null || run.deliveredAt <= until);
  const completed = await loader.completePage({ ...draft, entries: passed }, room, signal);
  const position = { lease, kind, id, from, to: page.next ?? page.at.cursor, finished };
  let quality = qualityOf(draft, draft.quarantine);
  const { outcome, entries, content } = await commitPage(
    { draft, completed },
    async (toStore) => {
      quality = await qualityOfNew(draft, toStore.quarantine, lease.feed, store);
      breaker.check(quality);
      return store.commitSweep({ ...position, ...toStore });
    },
    (batch) => store.tryEntries(lease, batch),
    signal,
  );
  if (outcome.kind === 'fenced') return null;
  breaker.committed(quality);
  report(outcome.counts, observer);
  retryWakeUp.committed(entries);
  return { counts: outcome.counts, commit: { ...position, ...content } };
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
