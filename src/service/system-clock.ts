import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../sync/ports.js';

/** Timers of Node overflow beyond this, and would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Time and chance of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) => delay(Math.min(ms, LONGEST_TIMER_MS), undefined, { signal }).catch(() => undefined),
  random: () => Math.random(),
};
