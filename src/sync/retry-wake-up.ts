import { linkedSignal } from './linked-signal.js';
import type { DraftEntry } from './page-draft.js';
import type { Clock } from './ports.js';

/** Ends the pause between two rounds of loading pending results when a page left some for which there was only no memory. */
export interface RetryWakeUp {
  /** Told of the entries of each page that was committed. */
  committed(entries: readonly DraftEntry[]): void;
  /** Resolves after `ms`, when a result was left, or when the signal aborts. At once where one was left since the last time. */
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
