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
): Promise<{ readonly done: T; readonly spentMs: number }> {
  const until = linkedSignal(signal);
  const done = linkedSignal(signal);
  let startedAt: number | null = null;
  const onStarted = () => {
    if (startedAt !== null) return;
    startedAt = clock.monotonic();
    void clock.sleep(ms, done.signal).then(until.abort);
  };
  try {
    if (ms <= 0) until.abort();
    const result = await work(until.signal, onStarted);
    return { done: result, spentMs: startedAt === null ? 0 : clock.monotonic() - startedAt };
  } finally {
    done.abort();
    done.unlink();
    until.unlink();
  }
}
