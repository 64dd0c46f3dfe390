import type { FeedContext, LeaderContext, ReconcileSettings } from './context.js';
import type { LeaseGrant, SweepKind, SweepState } from './ports.js';
import { readServiceDate } from './probe.js';
import { createPassMemory } from './run-pass.js';
import { isServiceClockOff } from './service-clock.js';
import { type Sweep, sweepStretch } from './sweep-stretch.js';
import { takeTurns } from './take-turns.js';

/** The window begins this much earlier, for what the service may understand by `since`. */
const WINDOW_OVERLAP_MS = 10 * 60_000;
/** How often it is looked whether a sweep is due, at most. */
const LOOK_MS = 60_000;

/**
 * Re-reads the recent past, and now and then everything, and stores what the cursor passed by (promise 9): runs that
 * became visible late, and revisions placed behind the cursor. Goes on where the last process left off. Ends when the lease
 * is lost or the signal aborts.
 */
export async function reconcile(lease: LeaseGrant, context: LeaderContext, signal: AbortSignal): Promise<void> {
  const { reconcile: settings, store, leaseTtlMs } = context;
  const memories = new Map<SweepKind, Sweep>();
  const pace = Math.min(settings.intervalMs ?? LOOK_MS, LOOK_MS);
  if (settings.intervalMs === null && settings.fullIntervalMs === null) return waitForEnd(signal);
  await takeTurns('sweep', context, signal, async () => {
    const progress = await sweepWhatIsDue(memories, lease, context, signal);
    if (progress === 'fenced' && !(await store.renewLease(lease, leaseTtlMs))) return 'over';
    return { pauseMs: progress === 'done' ? pace : 0 };
  });
}

/** Which sweeps are to run now: those under way, and those whose interval is over. The window first. Pure. */
export function dueSweeps(sweeps: readonly SweepState[], settings: ReconcileSettings): readonly SweepKind[] {
  const intervals = { window: settings.intervalMs, full: settings.fullIntervalMs };
  return (['window', 'full'] as const).filter((kind) => {
    const interval = intervals[kind];
    const last = sweeps.find((sweep) => sweep.kind === kind);
    if (interval === null) return false;
    // The first reading of the history counts as a full sweep; until it is over there is nothing to sweep.
    if (last === undefined) return kind === 'window';
    return !last.finished || last.ageMs >= interval;
  });
}

/** `more`: there is more to read at once; `fenced`: the lease was lost, or a sweep's stored position is not the expected one. */
async function sweepWhatIsDue(
  memories: Map<SweepKind, Sweep>,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<'more' | 'done' | 'fenced'> {
  const { store, reconcile: settings } = context;
  for (const kind of dueSweeps(await store.readSweeps(lease.feed), settings)) {
    const sweep = await currentSweep(kind, lease, context, signal);
    const progress = sweep === null ? 'end' : await sweepStretch(remembered(sweep, memories), lease, context, signal);
    if (signal.aborted) return 'done';
    if (progress === 'fenced') return progress;
    if (progress === 'more' || progress === 'rejected') return 'more';
  }
  return 'done';
}

/** The sweep with what is remembered of its earlier turns. */
function remembered(state: SweepState, sweeps: Map<SweepKind, Sweep>): Sweep {
  const before = sweeps.get(state.kind);
  const memory = before?.id === state.id ? before.memory : createPassMemory();
  const sweep = { ...state, memory };
  sweeps.set(state.kind, sweep);
  return sweep;
}

/** The sweep under way, or a new one; null while the feed has not reached its end. */
async function currentSweep(
  kind: SweepKind,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<SweepState | null> {
  const { store } = context;
  const find = async () => (await store.readSweeps(lease.feed)).find((sweep) => sweep.kind === kind) ?? null;
  const last = await find();
  if (last !== null && !last.finished) return last;
  if (!(await store.readStatus(lease.feed)).endReached) return null;
  const serviceTime = await readServiceTime(context, signal);
  const { lagMs, dataCompleteAsOf: completeAsOf } = await store.readStatus(lease.feed);
  if (lagMs === null || completeAsOf === null) return null;
  // Up to what the feed itself is complete to: whatever is missing there was passed by. The lag was true before its answer
  // arrived, so this is not too early.
  const until = new Date(serviceTime(context.clock.monotonic()) - lagMs);
  const since = kind === 'full' ? null : windowStart(until, last, context.reconcile.windowMs);
  return (await store.beginSweep(lease, { kind, since, until, completeAsOf })) ? find() : null;
}

/** Where a window begins: no later than the last one ended, so that a pause leaves no gap. Pure. */
export function windowStart(until: Date, last: SweepState | null, windowMs: number): Date {
  const start = Math.min(until.getTime() - windowMs, last?.until.getTime() ?? Number.POSITIVE_INFINITY);
  return new Date(start - WINDOW_OVERLAP_MS);
}

/** The service's time at a monotonic one; by our own clock where its answers show no other. */
async function readServiceTime(context: FeedContext, signal: AbortSignal): Promise<(monotonic: number) => number> {
  const { read, clock } = context;
  const probe = { filters: read.filters, start: { since: new Date(clock.now()) } };
  const serviceDate = await readServiceDate(probe, 'sweep', context, signal);
  const answeredAt = clock.monotonic();
  const now = clock.now();
  const answered = isServiceClockOff(serviceDate, now) ? serviceDate.getTime() : now;
  return (monotonic) => answered + monotonic - answeredAt;
}

function waitForEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
