import type { Clock } from '../../core/clock.js';
import { classifyError, type Failure } from '../../core/errors.js';
import { pauseAfter } from '../../sync/retry/backoff.js';
import { formatSeconds } from '../terminal/format.js';

const TRIES = 5;

export interface RetryOptions {
  readonly clock: Clock;
  /** Ends a pause. Without it only the end of the process does. */
  readonly signal?: AbortSignal;
  /** Called before each pause with its reason in one sentence: the service may request a pause of an hour. */
  readonly onPause: (message: string, pauseMs: number, failure: Failure) => void;
}

/**
 * Runs work of a long command and retries it up to four times after temporary failures, with growing pauses. Rejects with
 * the last failure, also if the signal aborts during a pause.
 */
export async function withRetries<T>(work: () => Promise<T>, { clock, signal, onPause }: RetryOptions): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      const failure = classifyError(error);
      if (failure.kind === 'internal' || failure.action !== 'retry' || failures === TRIES || signal?.aborted)
        throw error;
      const pauseMs = pauseAfter(failures, failure, clock.random());
      onPause(`${(error as Error).message}; retrying in ${formatSeconds(pauseMs / 1000)}`, pauseMs, failure);
      await clock.sleep(pauseMs, signal ?? new AbortController().signal);
      if (signal?.aborted) throw error;
    }
  }
}
