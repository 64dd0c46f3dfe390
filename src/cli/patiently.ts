import { troubleOf } from '../outcome/trouble.js';
import { pauseAfter } from '../sync/backoff.js';
import type { Clock, Trouble } from '../sync/ports.js';
import { humanSeconds } from './human.js';

const TRIES = 5;

export interface Patience {
  readonly clock: Clock;
  /** Ends a pause; without one nothing but the end of the process does. */
  readonly signal?: AbortSignal;
  /** Told of each pause, in one line: they may be long, since the service may ask for an hour. */
  readonly onPause: (said: string, pauseMs: number, trouble: Trouble) => void;
}

/**
 * Tries work of a long command again while its failures are passing ones, a few times with growing pauses. Rejects with
 * the last failure, as it does when the signal aborts during a pause.
 */
export async function patiently<T>(work: () => Promise<T>, { clock, signal, onPause }: Patience): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble.kind === 'internal' || trouble.remedy !== 'retry' || failures === TRIES || signal?.aborted)
        throw error;
      const pauseMs = pauseAfter(failures, trouble, clock.random());
      onPause(`${(error as Error).message}; trying again in ${humanSeconds(pauseMs / 1000)}`, pauseMs, trouble);
      await clock.sleep(pauseMs, signal ?? new AbortController().signal);
      if (signal?.aborted) throw error;
    }
  }
}
