import type { Clock } from '../../core/clock.js';
import type { CheckedEntry } from '../page/check-page.js';
import { linkedSignal } from '../waiting/linked-signal.js';

/** Ends the pause between two rounds of retries once a page was committed whose results are pending only for lack of memory. */
export interface RetryWakeUp {
  /** Called with the entries of each page that was committed. */
  committed(entries: readonly CheckedEntry[]): void;
  /**
   * Resolves after `ms`, when there is such a result, or when the signal aborts; at once if there was one since the last pause.
   * Returns whether there was one.
   */
  sleep(ms: number, signal: AbortSignal): Promise<boolean>;
}

export function createRetryWakeUp(clock: Pick<Clock, 'sleep'>): RetryWakeUp {
  let isDue = false;
  let wake = () => {};
  return {
    committed: (entries) => {
      if (!entries.some(({ accepted: { pending } }) => pending === 'no_memory')) return;
      isDue = true;
      wake();
    },
    sleep: async (ms, signal) => {
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
