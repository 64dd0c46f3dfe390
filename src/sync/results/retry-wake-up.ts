import type { Clock } from '../../core/clock.js';
import type { CheckedEntry } from '../page/check-page.js';
import { linkedSignal } from '../retry/linked-signal.js';

/** Ends the pause between two rounds of pending results when a page leaves results that only lacked memory. */
export interface RetryWakeUp {
  /** Called with the entries of each page that was committed. */
  committed(entries: readonly CheckedEntry[]): void;
  /** Resolves after `ms`, when a result is left, or when the signal aborts; at once if one was left since the last pause. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export function createRetryWakeUp(clock: Pick<Clock, 'sleep'>): RetryWakeUp {
  let left = false;
  let wake = () => {};
  return {
    committed: (entries) => {
      if (!entries.some(({ accepted: { pending } }) => pending === 'no_memory')) return;
      left = true;
      wake();
    },
    sleep: async (ms, signal) => {
      const sleeping = linkedSignal(signal);
      wake = sleeping.abort;
      if (!left) await clock.sleep(ms, sleeping.signal);
      sleeping.unlink();
      left = false;
    },
  };
}
