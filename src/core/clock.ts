import { setTimeout as delay } from 'node:timers/promises';

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

/** The clock and random numbers of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => undefined),
  random: () => Math.random(),
};
