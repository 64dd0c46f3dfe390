import type { LeaderContext } from '../context.js';
import type { UnfinishedWork } from '../lease/unfinished-work.js';
import type { LeaseGrant, PassKind } from '../ports/index.js';
import { runRepeatedly } from '../retry/run-repeatedly.js';
import type { IdleGate } from '../waiting/idle-gate.js';
import { createPassStarter } from './begin-pass.js';
import { PassPages } from './pass-pages.js';
import { PASS_KINDS, PASS_POLICIES } from './pass-policy.js';

/** Interval of checking whether there is a pass to run, milliseconds. The reads of the feed's row show whether one was requested. */
const CHECK_EVERY_MS = 2_000;
/** Pause while the cursor of a recent or full pass is stuck, milliseconds. */
const STUCK_PAUSE_MS = 60_000;

/**
 * Runs the passes of a feed, those of each kind one after the other. Begins recent and full passes when they are due, and
 * resumes unfinished passes, until the signal aborts.
 */
export async function runPasses(
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const checkEveryMs = Math.min(CHECK_EVERY_MS, context.settings.reconcile.intervalMs ?? CHECK_EVERY_MS);
  const kinds = PASS_KINDS.map((kind) => createPassesOfKind(kind, lease, context, work, idle));
  const running = new Map<PassesOfKind, Promise<void>>();
  // One timer for all kinds: a feed rarely has a pass to run, and a process may follow a thousand feeds.
  while (!signal.aborted) {
    const due = kinds.filter((passes) => !running.has(passes) && passes.mayHaveOne());
    for (const passes of due) {
      const run = passes.run(signal).finally(() => running.delete(passes));
      running.set(passes, run);
    }
    await context.clock.sleep(checkEveryMs, signal);
  }
  await Promise.all(running.values());
}

type PassesOfKind = ReturnType<typeof createPassesOfKind>;

/** The passes of one kind. */
function createPassesOfKind(
  kind: PassKind,
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  idle: IdleGate,
) {
  const { store, observer } = context;
  const { pollIntervalMs } = context.settings;
  const { yieldsTo, findsSkipped } = PASS_POLICIES[kind];
  const stuck = findsSkipped ? STUCK_PAUSE_MS : pollIntervalMs;
  // `fenced`: if the lease was lost, `keepLease` finds that at its next read, and ends this task.
  const pauses = { more: 0, end: 0, unclear: stuck, stuck, fenced: pollIntervalMs };
  const starter = kind === 'recent' || kind === 'full' ? createPassStarter(kind, lease, context) : null;
  const find = async (until: AbortSignal, isRunning: boolean) => {
    const pass = isRunning || work.mayHavePass(kind) ? await store.nextPass(lease.feed, kind) : null;
    if (pass === null) return starter === null ? null : starter.beginDue(until);
    const mustYield = yieldsTo !== null && (await store.nextPass(lease.feed, yieldsTo)) !== null;
    return mustYield ? null : pass;
  };
  return {
    /** Returns whether there may be one to run. */
    mayHaveOne: (): boolean => work.mayHavePass(kind) || starter?.mayBeDue() === true,
    /** Runs them until there is none or the signal aborts. Never rejects. */
    run: async (signal: AbortSignal): Promise<void> => {
      let pages: PassPages | null = null;
      const leave = () => {
        if (pages !== null) observer.reading(kind, null);
        pages = null;
      };
      await runRepeatedly(kind, context, signal, async () => {
        const pass = await find(signal, pages !== null);
        if (pages !== null && !pages.isOf(pass)) leave();
        if (pass === null) return 'done';
        pages ??= new PassPages(pass, lease, context, idle);
        const next = await pages.readSlice(pass, signal);
        if (next === 'end') {
          observer.passFinished(pages.pass);
          leave();
        }
        return { pauseMs: pauses[next] };
      });
      leave();
    },
  };
}
