import { systemClock as requestClock } from '../service/deadline.js';
import type { Clock } from '../sync/ports.js';

/** Time and chance of this machine. */
export const systemClock: Clock = { ...requestClock, random: () => Math.random() };
