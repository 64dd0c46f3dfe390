import { systemClock as requestClock } from '../service/deadline.js';
import type { Clock } from '../sync/ports.js';

/** Timers of Node overflow beyond this, and would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Time and chance of this machine. */
export const systemClock: Clock = {
  ...requestClock,
  sleep: (ms, signal) => requestClock.sleep(Math.min(ms, LONGEST_TIMER_MS), signal),
  random: () => Math.random(),
};
