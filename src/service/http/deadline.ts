import { setMaxListeners } from 'node:events';
import { type Clock, WAIT_OVER } from '../../core/clock.js';

/** Waits for something that the deadline must not include. */
export type OutsideDeadline = <T>(wait: Promise<T>) => Promise<T>;

/**
 * Runs `work` until it settles, `ms` have passed, or one of `signals` aborts, whichever is first. Rejects at once even if the
 * work does not notice: undici checks a signal only once a request has its connection.
 * @param expired creates the error for the timeout
 */
export async function withDeadline<T>(
  work: (signal: AbortSignal, outside: OutsideDeadline) => Promise<T>,
  ms: number,
  expired: () => Error,
  signals: readonly AbortSignal[],
  clock: Clock,
): Promise<T> {
  const stop = new AbortController(); // its signal is passed to the work
  const onAbort = (event: Event) => stop.abort((event.target as AbortSignal).reason);
  const stopped = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason), { once: true });
  });
  let leftMs = ms;
  /** Returns what stops the timer. */
  const startTimer = () => {
    const timer = new AbortController();
    const startedAt = clock.monotonic();
    void clock.sleep(leftMs, timer.signal).then(() => {
      if (!timer.signal.aborted) stop.abort(expired());
    });
    return () => {
      leftMs -= clock.monotonic() - startedAt;
      timer.abort(WAIT_OVER);
    };
  };
  let stopTimer = () => {};
  const outside: OutsideDeadline = async (wait) => {
    stopTimer();
    try {
      return await wait;
    } finally {
      if (!stop.signal.aborted) stopTimer = startTimer();
    }
  };
  try {
    for (const signal of signals) {
      signal.throwIfAborted();
      setMaxListeners(0, signal); // each running request has a listener; Node reports more than ten as a leak
      signal.addEventListener('abort', onAbort, { once: true });
    }
    stopTimer = startTimer();
    const working = work(stop.signal, outside);
    working.catch(() => undefined); // the loser of the race must not count as unhandled
    return await Promise.race([working, stopped]);
  } finally {
    stopTimer();
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
  }
}
