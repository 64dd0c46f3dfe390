import type { Clock } from '../../core/clock.js';
import { linkedSignal } from '../waiting/linked-signal.js';

export type RetryWakeUp = ReturnType<typeof createRetryWakeUp>;

/** Ends the pause between two rounds of retries once a page was committed whose results are pending only for lack of memory. */
export function createRetryWakeUp(clock: Clock) {
  let isDue = false;
  let wake = () => {};
  return {
    /** Called when a page with such a result was committed. */
    wake: (): void => {
      isDue = true;
      wake();
    },
    /**
     * Resolves after `ms`, when there is such a result, or when the signal aborts; at once if there was one since the last pause.
     * Returns whether there was one.
     */
    sleep: async (ms: number, signal: AbortSignal): Promise<boolean> => {
      const sleeping = linkedSignal(signal);
      wake = sleeping.abort;
      if (!isDue) await clock.sleep(ms, sleeping.signal);
      sleeping.unlink();
      const wasDue = isDue;
      isDue = false;
      return wasDue;
    },
  };
}
