import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { linkedSignal } from './linked-signal.js';

/** Sleeps, at the longest until one of the signals aborts. */
export async function sleepUntilAny(clock: Clock, ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  const until = linkedSignal(...signals);
  await clock.sleep(ms, until.signal);
  until.unlink();
}

export type WakeUp = ReturnType<typeof createWakeUp>;

/** Ends the pauses of one task early. A call between two pauses ends the next one. */
export function createWakeUp(clock: Clock) {
  let called = new AbortController();
  return {
    wake: (): void => called.abort(WAIT_OVER),
    /** Resolves after `ms`, when the task is woken, or when the signal aborts. Returns whether it was woken. */
    sleep: async (ms: number, signal: AbortSignal): Promise<boolean> => {
      await sleepUntilAny(clock, ms, signal, called.signal);
      const isWoken = called.signal.aborted;
      if (isWoken) called = new AbortController();
      return isWoken;
    },
  };
}
