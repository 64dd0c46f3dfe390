import PQueue from 'p-queue';
import type { Clock } from '../../sync/ports.js';
import { type RetryOptions, withRetries } from '../with-retries.js';

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

/** Requests of one command. One `Retry-After` is meant for all of them. */
export function createPatientRequests({ perSecond, clock, signal, onPause }: RequestPace): PatientRequests {
  const turns = new PQueue(perSecond === null ? {} : { interval: 1000 / perSecond, intervalCap: 1 });
  let quietUntil = Number.NEGATIVE_INFINITY;
  const turn = async () => {
    if (clock.monotonic() < quietUntil) await clock.sleep(quietUntil - clock.monotonic(), signal);
    await turns.add(async () => {}, { signal });
    signal.throwIfAborted();
  };
  const pause: RetryOptions['onPause'] = (said, pauseMs, failure) => {
    if (failure.retryAfterMs !== undefined) quietUntil = Math.max(quietUntil, clock.monotonic() + pauseMs);
    onPause(said);
  };
  return (request) => withRetries(() => turn().then(() => request(signal)), { clock, signal, onPause: pause });
}
