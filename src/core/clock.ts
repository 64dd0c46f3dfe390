import { setTimeout as delay } from 'node:timers/promises';

/** Time, waiting and chance. All durations in the engine are milliseconds. */
export interface Clock {
  /** Wall-clock time, milliseconds since 1970. Only for ages against the service's clock. */
  now(): number;
  /** Monotonic time in milliseconds. For durations; never goes back. */
  monotonic(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Uniform in [0, 1), for jitter. */
  random(): number;
}

/** Timers of Node overflow beyond this, and would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Time and chance of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => delay(Math.min(ms, LONGEST_TIMER_MS), undefined, { signal }).catch(() => undefined),
  random: () => Math.random(),
};
