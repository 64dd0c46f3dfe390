import { type Breaker, qualityOf, qualityOfNew } from './breaker.js';
import type { Room } from './byte-budget.js';
import type { FeedContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import { type DeadEnd, deadEndOf, isDeadEnd, isEndOfFeed, isRepeated, pageLimitAt } from './end-of-feed.js';
import type { PartWriter } from './isolate-refused.js';
import type { CommitCounts, CommitOutcome, LeaseGrant, Position, SweepState, SyncObserver } from './ports.js';
import { type FetchedPage, readPageWithin } from './read-page.js';
import { createRecentCursors } from './recent-cursors.js';
import { isRejected } from './recover-cursor.js';
import type { CursorRefusals } from './rejected-cursor.js';
import { writePage } from './write-page.js';

/** A full sweep is in no hurry: this pause after each page leaves service and database to others. */
const FULL_SWEEP_PAUSE_MS = 1_000;
/** After this long a turn ends: a full sweep lets the window have its own, and failures of before are over. */
const STRETCH_MS = 60_000;

/**
 * `through`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the
 * lease was lost, or the sweep's stored position is not the expected one.
 */
export type SweepProgress = 'through' | 'more' | 'stuck' | 'fenced';

/** What is remembered of the last pages of a sweep. */
export interface SweepMemory {
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
}

/** A sweep under way. */
export interface Sweep extends SweepState, SweepMemory {}

/**
 * Reads a sweep's pages from where it stands, and stores what is missing. Its position is kept with every page.
 * @throws MostlyBad
 */
export async function sweepStretch(
  sweep: Sweep,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<SweepProgress> {
  const { clock, budget } = context;
  const begunAt = clock.monotonic();
  let at: Position = { cursor: sweep.cursor, since: sweep.since };
  const recent = createRecentCursors();
  let stored = sweep.cursor;
  let restarted = false;
  let deadEnd: DeadEnd | null = null;
  while (!signal.aborted) {
    const room = budget.open('sweep');
    const swept = await sweepPage(at, deadEnd, room, { ...sweep, cursor: stored }, lease, context, signal)
      .catch(async (error) => {
        // Its cursor may be rejected like the feed's: it starts over, once, which costs only time.
        if (restarted || at.cursor === null || !sweep.refusals.persist(at.cursor, error)) throw error;
        if (!(await isRejected(at.cursor, error, context, signal))) throw error;
        return null;
      })
      .finally(room.close);
    if (swept === null) {
      restarted = true;
      at = { ...at, cursor: null };
      continue;
    }
    sweep.refusals.accepted();
    if (swept.deadEnd !== null && !deadEnd?.isShort && swept.progress === 'stuck') {
      deadEnd = swept.deadEnd;
      stored = at.cursor;
      continue;
    }
    if (swept.progress !== 'more') return swept.progress;
    deadEnd = null;
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
  readonly deadEnd: DeadEnd | null;
  readonly progress: SweepProgress;
}

async function sweepPage(
  at: Position,
  deadEnd: DeadEnd | null,
  room: Room,
  sweep: Sweep,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<Swept> {
  const pageLimit = pageLimitAt(at, deadEnd, context.pageLimit);
  const page = await readPageWithin(room, { ...context, pageLimit }, at, signal);
  await requireFeedCursor(page, lease, context, signal);
  const progress = await progressAt(page, deadEnd, sweep, context, signal);
  const outcome = await commitSwept(page, room, sweep, progress === 'through', lease, context, signal);
  return { next: page.next, deadEnd: deadEndOf(page), progress: outcome.kind === 'fenced' ? 'fenced' : progress };
}

/**
 * Only the end of the feed, or a page that proves to reach beyond the stretch, ends a sweep. What is on a page that led
 * nowhere twice is committed with the end of the sweep.
 * @param deadEnd where the page before led nowhere
 */
async function progressAt(
  page: FetchedPage,
  deadEnd: DeadEnd | null,
  { until }: SweepState,
  { service, read }: FeedContext,
  signal: AbortSignal,
): Promise<SweepProgress> {
  if (page.provenUpTo !== null && page.provenUpTo > until) return 'through';
  const verdict = await isEndOfFeed(page, read.filters, service, signal);
  if (verdict === 'end' || isRepeated(deadEndOf(page), deadEnd)) return 'through';
  return verdict === 'more' && !isDeadEnd(page) ? 'more' : 'stuck';
}

async function commitSwept(
  page: FetchedPage,
  room: Room,
  { kind, id, until, cursor: from, breaker }: Sweep,
  finished: boolean,
  lease: LeaseGrant,
  { store, loader, observer }: FeedContext,
  signal: AbortSignal,
): Promise<CommitOutcome> {
  const { draft } = page;
  const passed = draft.entries.filter(({ accepted: { run } }) => run.deliveredAt === null || run.deliveredAt <= until);
  const resolved = await loader.completePage({ ...draft, entries: passed }, room, signal);
  let quality = qualityOf(draft, draft.quarantine);
  const write: PartWriter = async ({ last, batch, quarantine }) => {
    if (last) {
      quality = await qualityOfNew(draft, quarantine, lease.feed, store);
      breaker.check(quality);
    }
    const position = last ? { to: page.next ?? page.at.cursor, finished } : { to: from, finished: false };
    const outcome = await store.commitSweep({ lease, kind, id, from, ...position, batch, quarantine });
    if (outcome.kind === 'committed') reportPart(outcome.counts, observer);
    return outcome;
  };
  const outcome = await writePage(write, draft, resolved, signal);
  if (outcome.kind === 'committed') breaker.committed(quality);
  return outcome;
}

function reportPart(counts: CommitCounts, observer: SyncObserver): void {
  observer.committed(counts, []);
  const found = foundOf(counts);
  if (found.first + found.later > 0) observer.reconciled(found);
}

/** What the cursor passed by: a revision that was stored, and only lacked something, is not among it. */
function foundOf({ inserted, updated, filled }: CommitCounts): { first: number; later: number } {
  return { first: inserted, later: updated - filled };
}
