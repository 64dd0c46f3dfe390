import { pauseAfter } from './backoff.js';
import type { FeedContext, ReconcileSettings } from './context.js';
import { isolateRefused, type PartWriter } from './isolate-refused.js';
import { batchOf, type DraftEntry } from './page-draft.js';
import type { CommitOutcome, LeaseGrant, Position, SweepKind, SweepState } from './ports.js';
import { type FetchedPage, readPage } from './read-page.js';
import { isServiceClockOff } from './service-clock.js';
import { troubleOf } from './trouble.js';

/** A full sweep is in no hurry: this pause after each page leaves service and database to others. */
const FULL_SWEEP_PAUSE_MS = 1_000;
/** The window begins this much earlier, for what the service may understand by `since`. */
const WINDOW_OVERLAP_MS = 10 * 60_000;
/** How often it is looked whether a sweep is due, at most. */
const LOOK_MS = 60_000;

/**
 * Re-reads the recent past, and now and then everything, and stores what the cursor passed by (promise 9): runs that
 * became visible late, and revisions placed behind the cursor. Goes on where the last process left off.
 */
export async function reconcile(lease: LeaseGrant, context: FeedContext, signal: AbortSignal): Promise<void> {
  const { clock, observer, reconcile: settings } = context;
  let failures = 0;
  const pace = Math.min(settings.intervalMs ?? LOOK_MS, LOOK_MS);
  if (settings.intervalMs === null && settings.fullIntervalMs === null) return waitForEnd(signal);
  while (!signal.aborted) {
    try {
      await sweepWhatIsDue(lease, context, signal);
      if (failures > 0) observer.recovered('sweep', failures);
      failures = 0;
      await clock.sleep(pace, signal);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, troubleOf(error), clock.random());
      observer.failed('sweep', error, failures, pauseMs);
      await clock.sleep(pauseMs, signal);
    }
  }
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

async function sweepWhatIsDue(lease: LeaseGrant, context: FeedContext, signal: AbortSignal): Promise<void> {
  const { store, reconcile: settings } = context;
  for (const kind of dueSweeps(await store.readSweeps(lease.feed), settings)) {
    const sweep = await currentSweep(kind, lease, context, signal);
    if (sweep !== null) await readThrough(sweep, lease, context, signal);
    if (signal.aborted) return;
  }
}

/** The sweep under way, or a new one; null while the feed's own history is still being read. */
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
  const status = await store.readStatus(lease.feed);
  if (!status.backfillComplete || status.lagMs === null) return null;
  const serviceNow = await serviceTime(context, signal);
  // Up to what the feed itself is complete to: whatever is missing there was passed by.
  const until = new Date(serviceNow - status.lagMs);
  const since = kind === 'full' ? null : new Date(until.getTime() - context.reconcile.windowMs - WINDOW_OVERLAP_MS);
  return (await store.beginSweep(lease, kind, since, until)) ? find() : null;
}

/** The service's clock, where its answers show that it differs from ours. */
async function serviceTime({ service, read, clock }: FeedContext, signal: AbortSignal): Promise<number> {
  const request = { filters: read.filters, start: { since: new Date(clock.now()) }, limit: 1, markdown: false };
  const { serviceDate } = await service.readPage(request, signal);
  const now = clock.now();
  return isServiceClockOff(serviceDate, now) ? serviceDate.getTime() : now;
}

async function readThrough(
  sweep: SweepState,
  lease: LeaseGrant,
  context: FeedContext,
  signal: AbortSignal,
): Promise<void> {
  const { service, clock, read } = context;
  let at: Position = { cursor: sweep.cursor, since: sweep.since };
  for (;;) {
    const page = await readPage(service, read, clock, at, signal).catch((error) => restartRejected(error, at));
    if (page === null) at = { ...at, cursor: null };
    else {
      const finished = isSweptThrough(page, sweep.until);
      const outcome = await commitSwept(page, sweep, finished, lease, context, signal);
      if (outcome.kind === 'fenced' || finished || signal.aborted) return;
      at = { ...at, cursor: page.next };
    }
    if (sweep.kind === 'full') await clock.sleep(FULL_SWEEP_PAUSE_MS, signal);
    if (signal.aborted) return;
  }
}

/** The sweep's own cursor may be rejected too: it begins anew, which costs only time. */
function restartRejected(error: unknown, at: Position): null {
  if (at.cursor !== null && troubleOf(error).kind === 'http_400') return null;
  throw error;
}

/** The end of the feed, a cursor that leads nowhere, or deliveries beyond the sweep's stretch. */
export function isSweptThrough({ draft, next, at }: FetchedPage, until: Date): boolean {
  if (draft.page.items.length === 0 || next === null || next === at.cursor) return true;
  const last = draft.entries.at(-1)?.accepted.run.deliveredAt ?? null;
  return last !== null && last > until;
}

async function commitSwept(
  page: FetchedPage,
  { kind, until }: SweepState,
  finished: boolean,
  lease: LeaseGrant,
  { store, loader, observer }: FeedContext,
  signal: AbortSignal,
): Promise<CommitOutcome> {
  const passed = page.draft.entries.filter(
    ({ accepted: { run } }) => run.deliveredAt === null || run.deliveredAt <= until,
  );
  const { entries } = await loader.completePage({ ...page.draft, entries: passed }, signal);
  const write: PartWriter = ({ last, ...part }) => {
    const position = last ? { to: page.next ?? page.at.cursor, finished } : { to: page.at.cursor, finished: false };
    return store.commitSweep({ lease, kind, ...position, ...part });
  };
  const { quarantine } = page.draft;
  const outcome = await write({ batch: batchOf(entries, page.draft.page), quarantine, last: true }).catch((error) =>
    isolateRefused(write, entries, quarantine, error),
  );
  if (outcome.kind === 'fenced') return outcome;
  observer.committed(outcome.counts, []);
  const found = foundOf(entries, outcome.counts.stored);
  if (found.first + found.later > 0) observer.reconciled(found);
  return outcome;
}

function foundOf(entries: readonly DraftEntry[], stored: readonly string[]): { first: number; later: number } {
  const known = new Set(stored);
  const highest = new Map<string, number>();
  for (const { accepted } of entries) {
    const { scanId, revision } = accepted.run;
    if (known.has(scanId)) highest.set(scanId, Math.max(revision, highest.get(scanId) ?? 0));
  }
  const first = [...highest.values()].filter((revision) => revision === 1).length;
  return { first, later: highest.size - first };
}

function waitForEnd(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
