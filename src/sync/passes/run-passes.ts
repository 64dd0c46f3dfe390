import type { LeaderContext } from '../context.js';
import type { LeaseGrant, Pass, PassKind } from '../ports/index.js';
import type { IdleGate } from '../retry/idle-gate.js';
import { linkedSignal } from '../retry/linked-signal.js';
import { runRepeatedly } from '../retry/run-repeatedly.js';
import { beginDuePass } from './begin-pass.js';
import type { PassContext } from './pass-context.js';
import { PASS_KINDS, PASS_POLICIES } from './pass-policy.js';
import { createPassState, type PassResult, type PassState, runPass } from './run-pass.js';

/**
 * Runs the passes of a feed, those of each kind one after the other. Begins recent and full passes when they are due, and
 * resumes unfinished passes. Ends when the lease is lost or the signal aborts.
 */
export async function runPasses(
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const stopped = linkedSignal(signal);
  try {
    await Promise.all(
      PASS_KINDS.map((kind) => runPassesOfKind(kind, lease, context, idle, stopped.signal).finally(stopped.abort)),
    );
  } finally {
    stopped.unlink();
  }
}

async function runPassesOfKind(
  kind: PassKind,
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { store, leaseTtlMs, pollIntervalMs, reconcile } = context;
  const { checkEveryMs, stuckPauseMs } = PASS_POLICIES[kind];
  const pauses = {
    none: Math.min(checkEveryMs, reconcile.intervalMs ?? checkEveryMs),
    stuck: stuckPauseMs ?? pollIntervalMs,
  };
  const find = (until: AbortSignal) => findPass(kind, lease, context, until);
  const runner = createPassRunner(find, lease, context, idle);
  await runRepeatedly(kind, context, signal, async () => {
    const result = await runner.runSlice(signal);
    if (result === 'fenced' && !(await store.renewLease(lease, leaseTtlMs))) return 'over';
    return { pauseMs: result === 'none' || result === 'stuck' ? pauses[result] : 0 };
  });
  runner.leave();
}

/** Returns the unfinished pass of this kind, or a new one if it is due. Null if there is none, or it must wait for another. */
async function findPass(
  kind: PassKind,
  lease: LeaseGrant,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Pass | null> {
  const { store } = context;
  const { yieldsTo } = PASS_POLICIES[kind];
  const unfinished = await store.nextPass(lease.feed, kind);
  if (unfinished === null && (kind === 'recent' || kind === 'full')) {
    return beginDuePass(kind, lease, context, signal);
  }
  const yields = unfinished !== null && yieldsTo !== null && (await store.nextPass(lease.feed, yieldsTo)) !== null;
  return yields ? null : unfinished;
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

/** @param find returns the pass that is next; null: there is none */
export function createPassRunner(
  find: (signal: AbortSignal) => Promise<Pass | null>,
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
    const pass = await find(signal);
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
