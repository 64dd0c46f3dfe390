import type { ServiceError } from './errors/service-error.js';

/** Pauses between two requests for a run that is being recognized, milliseconds: doubled from the first up to the longest. */
const LONGEST_PAUSE_MS = 10_000;
export const FIRST_RUN_PAUSE_MS = 1_000;

/** Time for which a run that was just submitted may be unknown, milliseconds: as long as waiting for a run retries failures. */
export const UNKNOWN_RUN_MS = 120_000;

/** Number of consecutive failures after which waiting for a run ends: about two minutes. */
export const RUN_TRIES = 15;

/** Returns whether waiting for a run that was submitted continues after this failure. */
export function isWaitedOut({ action, retryForMs }: ServiceError): boolean {
  return action === 'retry' || retryForMs !== undefined;
}

/** Returns the pause after one of this length. */
export function nextRunPause(pauseMs: number): number {
  return Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
}
