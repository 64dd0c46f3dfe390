import type { Clock } from '../../core/clock.js';
import type { CommitCounts } from '../../core/counts.js';
import { type PageProgress, reportLoading, type StoredPage, storePage } from '../commit/store-page.js';
import { type DeadEnd, reachesBeyond } from '../page/end-of-feed.js';
import { createRecentCursors, type RecentCursors } from '../page/recent-cursors.js';
import type { LeaseGrant, Pass, ReadingPace, SyncObserver } from '../ports/index.js';
import type { CompletedPage } from '../prefetch/completed-page.js';
import { openAhead } from '../prefetch/open-ahead.js';
import { isRejected } from '../recovery/recover-cursor.js';
import { type CursorRefusals, CursorReplaced, createCursorRefusals } from '../recovery/rejected-cursor.js';
import { assertSameOrganization } from '../recovery/verify-organization.js';
import { type Breaker, createBreaker } from '../retry/breaker.js';
import type { IdleGate } from '../retry/idle-gate.js';
import { linkedSignal } from '../retry/linked-signal.js';
import type { PassContext } from './pass-context.js';
import { PASS_POLICIES } from './pass-policy.js';
import { createPaceMeter, type PaceMeter } from './reading-pace.js';
import { positionWithoutCursor } from './restart-pass.js';

/** Maximum duration of a slice, milliseconds. The next slice continues from the stored position. */
const SLICE_MS = 30_000;

/** How long a page may wait for the feed to be idle, milliseconds. It is read again if it has waited longer. */
const PATIENCE_MS = 10_000;

/** State of a pass that is kept from slice to slice. */
export interface PassMemory {
  /** The pass as it is stored. */
  pass: Pass;
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
  readonly meter: PaceMeter;
  pace: ReadingPace | null;
  recent: RecentCursors;
  /** The cursor that the last page led to. */
  reached: string | null;
  /** Where the page before led nowhere. */
  deadEnd: DeadEnd | null;
  /** The stored cursor, once the service rejects it, and the error that said so. */
  rejected: { readonly cursor: string; readonly refusal: unknown } | null;
}

export function createPassMemory(pass: Pass): PassMemory {
  return {
    pass,
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    meter: createPaceMeter(),
    pace: null,
    recent: createRecentCursors(),
    reached: null,
    deadEnd: null,
    rejected: null,
  };
}

/**
 * `end`: the pass has ended; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the lease
 * was lost, or the pass has another position.
 */
export type PassResult = Exclude<PageProgress, 'unclear'>;

/**
 * Reads and stores the pages of a pass, each with the position after it, for one slice.
 * @throws MostlyBad
 * @throws CursorReplaced if the service rejects the cursor of the pass; the next slice continues without it
 */
export async function runPass(
  memory: PassMemory,
  lease: LeaseGrant,
  context: PassContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<PassResult> {
  const { clock, store } = context;
  const { readsAhead, waitsForFeed, pauseMs } = PASS_POLICIES[memory.pass.kind];
  if (waitsForFeed) await idle.wait(signal);
  // Before any page is requested.
  const feedHadCursor = (await store.readPosition(lease.feed)).cursor !== null;
  const start = await startOf(memory, context, signal);
  const pagesAhead = readsAhead ? context.pagesAhead : 1;
  const how = { priority: memory.pass.kind, maxJoined: 1, deadEnd: memory.deadEnd };
  const ahead = openAhead(start, how, { ...context, pagesAhead }, signal);
  const begunAt = clock.monotonic();
  // The database has lost commits, or another writer moved it: what is read again is no circle.
  if (memory.pass.cursor !== memory.reached) memory.recent = createRecentCursors();
  try {
    while (clock.monotonic() - begunAt < SLICE_MS) {
      const page = await ahead.next();
      if (page === null) return 'more';
      memory.refusals.accepted();
      if (waitsForFeed && !(await isIdleSoon(idle, clock, signal))) return 'more';
      signal.throwIfAborted();
      await assertSameOrganization(page, lease, context, signal);
      const { progress, deadEnd } = await storePassPage(page, feedHadCursor, memory, lease, context, signal);
      if (progress === 'fenced') return progress;
      memory.rejected = null;
      memory.deadEnd = deadEnd;
      memory.reached = memory.pass.cursor;
      if (progress === 'unclear') return 'stuck';
      if (progress === 'stuck') memory.recent = createRecentCursors(); // after the pause it may go round once more
      if (progress !== 'more') return progress;
      if (pauseMs > 0) await clock.sleep(pauseMs, signal);
    }
    return 'more';
  } catch (error) {
    const { cursor } = memory.pass;
    if (cursor === null || memory.rejected !== null || !memory.refusals.isPersistent(cursor, error)) throw error;
    if (!(await isRejected(cursor, error, context, signal))) throw error;
    memory.rejected = { cursor, refusal: error };
    memory.recent = createRecentCursors(); // what is read again is no circle
    throw new CursorReplaced('a pass', error, context.pollIntervalMs);
  } finally {
    ahead.stop();
  }
}

/** Waits a short time for the feed to be idle. After that the pages must release their memory for others. */
async function isIdleSoon(idle: IdleGate, clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<boolean> {
  if (idle.isOpen) return true;
  const patience = linkedSignal(signal);
  void idle.wait(patience.signal).then(patience.abort);
  await clock.sleep(PATIENCE_MS, patience.signal);
  patience.abort();
  patience.unlink();
  return idle.isOpen;
}

/** The stored position, or one before it if the service rejects its cursor. */
async function startOf(memory: PassMemory, context: PassContext, signal: AbortSignal) {
  const { pass, rejected } = memory;
  if (rejected === null || rejected.cursor !== pass.cursor) {
    memory.rejected = null;
    return { cursor: pass.cursor, since: pass.since };
  }
  return positionWithoutCursor(pass, rejected.refusal, context, signal);
}

function storePassPage(
  page: CompletedPage,
  feedHadCursor: boolean,
  memory: PassMemory,
  lease: LeaseGrant,
  context: PassContext,
  signal: AbortSignal,
): Promise<StoredPage> {
  const { store, read } = context;
  const { breaker, deadEnd, recent, pace, pass } = memory;
  const { id, until, cursor } = pass;
  const { endsAtUntil, findsSkipped } = PASS_POLICIES[pass.kind];
  return storePage(
    findsSkipped ? withoutLaterEntries(page, until) : page,
    endsAtUntil && reachesBeyond(page, until),
    {
      ...{ ...context, lease, filters: read.filters, breaker, stored: cursor, deadEnd, recent },
      commit: (content, { from, to, atEnd, again }) =>
        store.commitPass({
          ...{ lease, id, until, from, to, finished: atEnd, feedHadCursor, pace, ...content },
          deliveredUpTo: deliveredUpTo(page, until),
          entries: again ? 0 : page.items,
        }),
      onCommitted: ({ counts }, entries) => {
        notePage(page, counts, memory, context);
        context.observer.committed(counts, []);
        if (findsSkipped) reportSkipped(counts, context.observer);
        else reportLoading(entries, context.observer);
      },
    },
    signal,
  );
}

function withoutLaterEntries(page: CompletedPage, until: Date): CompletedPage {
  const isDue = (deliveredAt: Date | null) => deliveredAt === null || deliveredAt <= until;
  return { ...page, completed: page.completed.filter(({ accepted: { run } }) => isDue(run.deliveredAt)) };
}

function deliveredUpTo({ provenUpTo }: CompletedPage, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

/** After the commit: updates the pass to what is stored, and reports its progress. */
function notePage(
  page: CompletedPage,
  { inserted, updated }: CommitCounts,
  memory: PassMemory,
  { observer, clock }: PassContext,
): void {
  const { pass, meter } = memory;
  const upTo = later(pass.deliveredUpTo, deliveredUpTo(page, pass.until));
  const entries = pass.entries + page.items;
  const stored = pass.stored + inserted + updated;
  memory.pass = { ...pass, cursor: page.next ?? page.at.cursor, deliveredUpTo: upTo, entries, stored };
  const leftMs = upTo === null ? null : pass.until.getTime() - upTo.getTime();
  memory.pace = meter.passed(clock.monotonic(), page.items, leftMs);
  observer.reading(pass.kind, { entries, deliveredUpTo: upTo, pace: memory.pace });
}

/** A revision that was stored, and only lacked something, was not skipped. */
function reportSkipped({ inserted, updated, filled }: CommitCounts, observer: Pick<SyncObserver, 'reconciled'>): void {
  const found = { first: inserted, later: updated - filled };
  if (found.first + found.later > 0) observer.reconciled(found);
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
