import type { LeaderContext } from './context.js';
import { reachesBeyond } from './end-of-feed.js';
import type { CommitCounts, LeaseGrant, SweepState, SyncObserver } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import { type PassMemory, type PassResult, runPass } from './run-pass.js';
import { type StoredPage, storePage } from './store-page.js';

/** A full sweep is in no hurry: this pause after each page leaves service and database to others. */
const FULL_SWEEP_PAUSE_MS = 1_000;
/** Duration of a slice. A full sweep then yields to a window that is due. */
const SLICE_MS = 60_000;

/** A sweep under way, and what is remembered of its last pages. */
export interface Sweep extends SweepState {
  readonly memory: PassMemory;
}

/** Reads pages of a sweep and stores what is missing. If its cursor is rejected it starts over, which costs only time. */
export function sweepStretch(
  sweep: Sweep,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<PassResult> {
  const { memory, cursor, since, kind } = sweep;
  const isRejected = cursor !== null && cursor === memory.rejected?.cursor;
  if (!isRejected) memory.rejected = null;
  return runPass(
    {
      ...{ memory, line: 'sweep', pagesAhead: 1, stored: cursor, sliceMs: SLICE_MS },
      start: { cursor: isRejected ? null : cursor, since },
      pauseMs: kind === 'full' ? FULL_SWEEP_PAUSE_MS : 0,
      waitForTurn: async () => {},
      storePage: (page, stored, until) => storeSweptPage(page, stored, sweep, lease, context, until),
    },
    lease,
    context,
    signal,
  );
}

function storeSweptPage(
  page: CompletedPage,
  stored: string | null,
  { memory, kind, id, until }: Sweep,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<StoredPage> {
  const { store, observer, read } = context;
  const { breaker, deadEnd } = memory;
  // What comes later is the cursor's business, and would be counted as passed by.
  const completed = page.completed.filter(
    ({ accepted: { run } }) => run.deliveredAt === null || run.deliveredAt <= until,
  );
  return storePage(
    { ...page, completed },
    reachesBeyond(page, until),
    {
      ...{ ...context, lease, filters: read.filters, breaker, stored, deadEnd },
      commit: (content, { from, to, atEnd }) =>
        store.commitSweep({ ...{ lease, kind, id, from, to, finished: atEnd }, ...content }),
      onCommitted: ({ counts }) => report(counts, observer),
    },
    signal,
  );
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
