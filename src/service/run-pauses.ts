import { ServiceError } from './errors/service-error.js';

/** Pauses between two requests for a run that is being recognized, milliseconds: doubled from the first up to the longest. */
const LONGEST_PAUSE_MS = 10_000;
const FIRST_PAUSE_MS = 1_000;

/** Time for which a run that was just submitted may be unknown, milliseconds: as long as waiting for a run retries failures. */
export const UNKNOWN_RUN_MS = 120_000;

/** Number of consecutive failures after which waiting for a run ends: about two minutes. */
const TRIES = 15;

/**
 * Reads a run with growing pauses until it is recognized. Temporary failures are retried for about two minutes.
 * @param read resolves to null while the run is being recognized
 * @param pause waits, after a failure or null; it rejects to end the wait
 * @throws the failure of the last request
 */
export async function readUntilRecognized<T>(
  read: () => Promise<T | null>,
  pause: (ms: number, failure: ServiceError | null) => Promise<void>,
): Promise<T> {
  let failures = 0;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    let failure: ServiceError | null = null;
    try {
      const run = await read();
      if (run !== null) return run;
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!(error instanceof ServiceError) || !isTemporary(error) || failures === TRIES) throw error;
      failure = error;
    }
    await pause(Math.max(pauseMs, failure?.retryAfterMs ?? 0), failure);
  }
}

function isTemporary({ action, retryForMs }: ServiceError): boolean {
  return action === 'retry' || retryForMs !== undefined;
}
