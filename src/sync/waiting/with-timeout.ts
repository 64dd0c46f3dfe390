import type { Clock } from '../../core/clock.js';
import { linkedSignal } from './linked-signal.js';

/**
 * Runs `work` with a signal that also aborts `ms` after the work first calls `startTimer`: time that it waits before its
 * first request does not count. No timer outlives the work.
 */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (until: AbortSignal, startTimer: () => void) => Promise<T>,
): Promise<T> {
  const until = linkedSignal(signal);
  let started = false;
  const startTimer = () => {
    if (started) return;
    started = true;
    void clock.sleep(ms, until.signal).then(until.abort);
  };
  try {
    return await work(until.signal, startTimer);
  } finally {
    until.abort();
    until.unlink();
  }
}
