import type { Clock } from '../../core/clock.js';
import type { CommitCounts } from '../../core/counts.js';
import { createBreaker } from '../commit/breaker.js';
import { createPaceMeter } from '../commit/reading-pace.js';
import { type PageProgress, type PageResult, reportLoading, storePage } from '../commit/store-page.js';
import type { LeaderContext } from '../context.js';
import type { CheckedEntry } from '../page/check-entries.js';
import { createRecentCursors } from '../page/cursors.js';
import { type DeadEnd, reachesBeyond } from '../page/end-of-feed.js';
import type { CheckedPage } from '../page/page.js';
import { possibleDelivery } from '../page/service-clock.js';
import type { LeaseGrant, Pass, ReadingPace, SyncObserver } from '../ports/index.js';
import { prefetchPages } from '../prefetch/prefetch-pages.js';
import { isRejected } from '../recovery/recover-cursor.js';
import { CursorReplaced, createCursorRefusals } from '../recovery/rejected-cursor.js';
import { assertSameOrganization } from '../recovery/verify-organization.js';
import type { IdleGate } from '../waiting/idle-gate.js';
import { linkedSignal } from '../waiting/linked-signal.js';
import { PASS_POLICIES } from './pass-policy.js';
import { findRestartPosition } from './restart-pass.js';

/** Maximum duration of a slice, milliseconds. The next slice continues from the stored position. */
const SLICE_MS = 30_000;

/** Maximum number of pages of a pass in memory. It commits one at a time, so it needs fewer than the feed. */
const MAX_HELD_PAGES = 10;

/** Maximum time that a page waits for the feed to be idle, milliseconds. After that it is discarded and read again later. */
const IDLE_TIMEOUT_MS = 10_000;

export type PassState = ReturnType<typeof createPassState>;

/** Creates the state of a pass that is kept from slice to slice. */
export function createPassState(pass: Pass) {
  return {
    /** The pass as it is stored. */
    pass,
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    meter: createPaceMeter(),
    pace: null as ReadingPace | null,
    recentCursors: createRecentCursors(),
    /** The cursor of the last page. */
    lastCursor: null as string | null,
    /** The dead end that the previous page found. */
    deadEnd: null as DeadEnd | null,
    /** The stored cursor, if the service rejects it, and the error. */
    rejected: null as { readonly cursor: string; readonly refusal: unknown } | null,
  };
}

/**
 * `end`: the pass has ended; `more`: there is more to read; `stuck`: its cursor is stuck for now; `fenced`: the lease
 * was lost, or the pass has another position.
 */
export type PassResult = Exclude<PageProgress, 'unclear'>;

/**
 * Reads and stores the pages of a pass, each with the position after it, for one slice.
 * @throws MostlyBad
 * @throws CursorReplaced if the service rejects the cursor of the pass; the next slice continues without it
 */
export async function runPass(
  state: PassState,
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<PassResult> {
  const { clock, store } = context;
  const { readsAhead, waitsForFeed, pauseMs } = PASS_POLICIES[state.pass.kind];
  if (waitsForFeed) await idle.wait(signal);
  // Read before any page is requested.
  const feedHadCursor = (await store.readPosition(lease.feed)).cursor !== null;
  const start = await findStart(state, lease.feed, context, signal);
  const maxHeld = readsAhead ? Math.min(context.maxHeldPages, MAX_HELD_PAGES) : 1;
  const options = { priority: 'background', maxJoined: 1, maxHeld, deadEnd: state.deadEnd } as const;
  const pages = prefetchPages(start, options, context, signal);
  const begunAt = clock.monotonic();
  // The database has lost commits, or another writer moved the pass: a cursor may return without a circle.
  if (state.pass.cursor !== state.lastCursor) state.recentCursors = createRecentCursors();
  /**
   * Returns null if there is no page, or the feed is busy. A function of its own, because a page in a variable of the loop would
   * stay in memory while the loop waits for the next one.
   */
  const storeNext = async (): Promise<PageProgress | null> => {
    const page = await pages.next();
    if (page === null) return null;
    state.refusals.accepted();
    if (waitsForFeed && !(await waitForIdle(idle, clock, signal))) return null;
    signal.throwIfAborted();
    await assertSameOrganization(page, lease, context, signal);
    const { progress, deadEnd } = await storePassPage(page, feedHadCursor, state, lease, context, signal);
    pages.release();
    if (progress === 'fenced') return progress;
    state.rejected = null;
    state.deadEnd = deadEnd;
    state.lastCursor = state.pass.cursor;
    return progress;
  };
  try {
    while (clock.monotonic() - begunAt < SLICE_MS) {
      const progress = await storeNext();
      if (progress === null) return 'more';
      if (progress === 'unclear') return 'stuck';
      if (progress === 'stuck') state.recentCursors = createRecentCursors(); // after the pause the same cursors may return
      if (progress !== 'more') return progress;
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
    }
    return 'more';
  } catch (error) {
    const { cursor } = state.pass;
    if (cursor === null || state.rejected !== null || !state.refusals.isPersistent(cursor, error)) throw error;
    if (!(await isRejected(cursor, error, context, signal))) throw error;
    state.rejected = { cursor, refusal: error };
    state.recentCursors = createRecentCursors(); // a cursor may return now without a circle
    throw new CursorReplaced('a pass', error, context.pollIntervalMs);
  } finally {
    pages.close();
  }
}

/** Waits a short time for the feed to be idle. Returns whether it is; if not, the pages must release their memory for others. */
async function waitForIdle(idle: IdleGate, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<boolean> {
  if (idle.isOpen) return true;
  const timeout = linkedSignal(signal);
  void idle.wait(timeout.signal).then(timeout.abort);
  await clock.sleep(IDLE_TIMEOUT_MS, timeout.signal);
  timeout.abort();
  timeout.unlink();
  return idle.isOpen;
}

/** Returns the stored position, or an earlier one if the service rejects its cursor. */
async function findStart(state: PassState, feed: string, context: LeaderContext, signal: AbortSignal) {
  const { pass, rejected } = state;
  if (rejected === null || rejected.cursor !== pass.cursor) {
    state.rejected = null;
    return { cursor: pass.cursor, since: pass.since };
  }
  return findRestartPosition(pass, rejected.refusal, feed, context, signal);
}

function storePassPage(
  page: CheckedPage,
  feedHadCursor: boolean,
  state: PassState,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<PageResult> {
  const { store } = context;
  const { breaker, deadEnd, recentCursors, pace, pass } = state;
  const { id, begunAt, until, cursor } = pass;
  const { endsAtUntil, findsSkipped } = PASS_POLICIES[pass.kind];
  // A full page before the end may have its times from the answer. Nothing on it is left to the cursor, which is far ahead.
  const isBeforeEnd = page.items >= page.limit && !reachesBeyond(page, until);
  return storePage(
    findsSkipped && !isBeforeEnd ? withoutLaterEntries(page, until, context.clock.now()) : page,
    {
      ...context,
      reading: pass.kind,
      isLast: endsAtUntil && reachesBeyond(page, until),
      lease,
      breaker,
      deadEnd,
      recentCursors,
      before: null,
      commit: (content, to, end) =>
        store.commitPass({
          ...{ lease, id, begunAt, until, from: cursor, to, end, feedHadCursor, pace, ...content },
          deliveredUpTo: deliveredUpTo(page, until),
          entries: page.items,
        }),
      onCommitted: ({ counts }, entries) => {
        updatePass(page, counts, state, context);
        context.observer.committed(counts, []);
        if (findsSkipped) reportSkipped(counts, context.observer);
        else reportLoading(entries, context.observer);
      },
    },
    signal,
  );
}

function withoutLaterEntries(page: CheckedPage, until: Date, wallClock: number): CheckedPage {
  const isDue = (entry: CheckedEntry) => {
    const { deliveredAt } = (entry.result ?? entry).accepted.run;
    return (possibleDelivery(deliveredAt, wallClock) ?? until) <= until;
  };
  return { ...page, entries: page.entries.filter(isDue) };
}

function deliveredUpTo({ provenUpTo }: CheckedPage, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

/** Updates the pass after a commit, and reports its progress. */
function updatePass(
  page: CheckedPage,
  { inserted, updated }: CommitCounts,
  state: PassState,
  { observer, clock }: LeaderContext,
): void {
  const { pass, meter } = state;
  const upTo = later(pass.deliveredUpTo, deliveredUpTo(page, pass.until));
  const entries = pass.entries + page.items;
  const stored = pass.stored + inserted + updated;
  state.pass = { ...pass, cursor: page.next ?? page.at.cursor, deliveredUpTo: upTo, entries, stored };
  const leftMs = upTo === null ? null : pass.until.getTime() - upTo.getTime();
  state.pace = meter.measure(clock.monotonic(), page.items, leftMs);
  observer.reading(pass.kind, { entries, deliveredUpTo: upTo, pace: state.pace });
}

/** Reports the runs that the cursor had skipped. Stored revisions that only lacked a value were not skipped. */
function reportSkipped({ inserted, updated, filled }: CommitCounts, observer: Pick<SyncObserver, 'reconciled'>): void {
  const found = { first: inserted, later: updated - filled };
  if (found.first + found.later > 0) observer.reconciled(found);
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
