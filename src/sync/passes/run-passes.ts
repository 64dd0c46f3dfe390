import type { LeaderContext } from '../context.js';
import type { UnfinishedWork } from '../lease/unfinished-work.js';
import type { LeaseGrant, Pass, PassKind } from '../ports/index.js';
import type { IdleGate } from '../retry/idle-gate.js';
import { linkedSignal } from '../retry/linked-signal.js';
import { runRepeatedly } from '../retry/run-repeatedly.js';
import { createPassStarter } from './begin-pass.js';
import type { PassContext } from './pass-context.js';
import { PASS_KINDS, PASS_POLICIES } from './pass-policy.js';
import { createPassState, type PassResult, type PassState, runPass } from './run-pass.js';

/** Interval of checking whether there is a pass to run, milliseconds. The renewals of the lease show whether one was requested. */
const CHECK_EVERY_MS = 2_000;

/**
 * Runs the passes of a feed, those of each kind one after the other. Begins recent and full passes when they are due, and
 * resumes unfinished passes. Ends when the lease is lost or the signal aborts.
 */
export async function runPasses(
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const stopped = linkedSignal(signal);
  try {
    await Promise.all(
      PASS_KINDS.map((kind) =>
        runPassesOfKind(kind, lease, context, work, idle, stopped.signal).finally(stopped.abort),
      ),
    );
  } finally {
    stopped.unlink();
  }
}

async function runPassesOfKind(
  kind: PassKind,
  lease: LeaseGrant,
  context: LeaderContext,
  work: UnfinishedWork,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { store, leaseTtlMs, pollIntervalMs, reconcile } = context;
  const { stuckPauseMs } = PASS_POLICIES[kind];
  const beginDue = kind === 'recent' || kind === 'full' ? createPassStarter(kind, lease, context) : async () => null;
  const pauses = {
    none: Math.min(CHECK_EVERY_MS, reconcile.intervalMs ?? CHECK_EVERY_MS),
    stuck: stuckPauseMs ?? pollIntervalMs,
  };
  const find = async (until: AbortSignal, isRunning: boolean) => {
    const pass = isRunning || work.mayHavePass(kind) ? await store.nextPass(lease.feed, kind) : null;
    if (pass === null) return beginDue(until);
    return (await mustYield(kind, lease, context)) ? null : pass;
  };
  const runner = createPassRunner(find, lease, context, idle);
  await runRepeatedly(kind, context, signal, async () => {
    const result = await runner.runSlice(signal);
    if (result === 'fenced' && !(await store.renewLease(lease, leaseTtlMs))) return 'over';
    return { pauseMs: result === 'none' || result === 'stuck' ? pauses[result] : 0 };
  });
  runner.leave();
}

/** Returns whether a pass of this kind must wait for one of another kind. */
async function mustYield(kind: PassKind, lease: LeaseGrant, { store }: LeaderContext): Promise<boolean> {
  const { yieldsTo } = PASS_POLICIES[kind];
  return yieldsTo !== null && (await store.nextPass(lease.feed, yieldsTo)) !== null;
}

/** Runs passes slice by slice, one pass at a time. */
export interface PassRunner {
  /**
   * Runs a slice of the pass that is next; `none`: there is no pass. The next slice continues from the stored position.
   * @throws Failure, or the signal's reason
   */
  runSlice(signal: AbortSignal): Promise<PassResult | 'none'>;
  /** Reports that the pass is no longer being read. */
  leave(): void;
}

function isSamePass(a: Pass, b: Pass | null): boolean {
  return a.id === b?.id && a.begunAt.getTime() === b.begunAt.getTime();
}

/** @param find returns the pass that is next, also if one is being run; null: there is none */
export function createPassRunner(
  find: (signal: AbortSignal, isRunning: boolean) => Promise<Pass | null>,
  lease: LeaseGrant,
  context: PassContext,
  idle: IdleGate,
): PassRunner {
  const { observer } = context;
  let state: PassState | null = null;
  const leave = () => {
    if (state !== null) observer.reading(state.pass.kind, null);
    state = null;
  };
  const runSlice = async (signal: AbortSignal) => {
    const pass = await find(signal, state !== null);
    if (state !== null && !isSamePass(state.pass, pass)) leave();
    if (pass === null) return 'none';
    state ??= createPassState(pass);
    state.pass = pass; // another writer may have moved it
    const result = await runPass(state, lease, context, idle, signal);
    if (result === 'end') {
      observer.passFinished(state.pass);
      leave();
    }
    return result;
  };
  return { runSlice, leave };
}
