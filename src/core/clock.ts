/** Time, waiting and randomness. All durations in the engine are milliseconds. */
export interface Clock {
  /** Wall-clock time, milliseconds since 1970. Only for ages relative to the service's clock. */
  now(): number;
  /** Monotonic time, milliseconds. For durations; never decreases. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Random number, uniform in [0, 1), for jitter. */
  random(): number;
}

/** Maximum duration of a timer in Node.js; a longer one overflows and fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Reason of signals that only end a wait, as most of them do. `abort()` without a reason creates an error with a stack trace, which
 * takes longer than anything else that a daemon at rest does.
 */
export const WAIT_OVER: unknown = new DOMException('the wait is over', 'AbortError');

/** The clock and random numbers of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep,
  random: () => Math.random(),
};

/** Unlike that of `node:timers/promises`, it creates no error when the signal aborts. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, Math.min(ms, MAX_TIMER_MS));
    signal.addEventListener('abort', end, { once: true });
  });
}
