import PQueue from 'p-queue';
import { ServiceError } from '../../service/service-error.js';
import { pauseAfter } from '../../sync/backoff.js';
import type { Clock } from '../../sync/ports.js';
import { humanSeconds } from '../human.js';

const TRIES = 5;

/** Sends a request, spaced from those before, and again while its failures are passing ones. */
export type PatientRequests = <T>(request: (signal: AbortSignal) => Promise<T>) => Promise<T>;

export interface RequestPace {
  /** Requests a second at most; null: as many as come. */
  readonly perSecond: number | null;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told of each pause, in one line. */
  readonly onPause: (said: string) => void;
}

/**
 * Requests of one command. One `Retry-After` is meant for all of them.
 * @returns rejects with the last failure after five tries, at once with one that does not pass, or with the signal's reason
 */
export function createPatientRequests({ perSecond, clock, signal, onPause }: RequestPace): PatientRequests {
  const turns = new PQueue(perSecond === null ? {} : { interval: 1000 / perSecond, intervalCap: 1 });
  let quietUntil = Number.NEGATIVE_INFINITY;
  const turn = async () => {
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    await turns.add(async () => {}, { signal });
    signal.throwIfAborted();
  };
  return async (request) => {
    for (let failures = 1; ; failures += 1) {
      await turn();
      try {
        return await request(signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ServiceError) || error.remedy !== 'retry' || failures === TRIES) throw error;
        const pauseMs = pauseAfter(failures, error, clock.random());
        if (error.retryAfterMs !== undefined) quietUntil = Math.max(quietUntil, clock.monotonic() + pauseMs);
        onPause(`${error.message}; trying again in ${humanSeconds(pauseMs / 1000)}`);
        await clock.sleep(pauseMs, signal);
      }
    }
  };
}
