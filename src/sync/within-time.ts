import { linkedSignal } from './linked-signal.js';
import type { Clock } from './ports.js';

/**
 * Runs `work` with a signal that also aborts `ms` after the work's first request has its turn: while others are being
 * served no time passes. No timer outlives the work.
 */
export async function withinTime<T>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (until: AbortSignal, onStarted: () => void) => Promise<T>,
): Promise<T> {
  const until = linkedSignal(signal);
  const done = linkedSignal(signal);
  let started = false;
  const onStarted = () => {
    if (started) return;
    started = true;
    void clock.sleep(ms, done.signal).then(until.abort);
  };
  try {
    return await work(until.signal, onStarted);
  } finally {
    done.abort();
    done.unlink();
    until.unlink();
  }
}
