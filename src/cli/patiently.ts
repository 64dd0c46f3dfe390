import { troubleOf } from '../outcome/trouble.js';
import { pauseAfter } from '../sync/backoff.js';
import type { Clock } from '../sync/ports.js';

const TRIES = 5;

/** Tries work of a long command again while its failures are passing ones, a few times with growing pauses. */
export async function patiently<T>(work: () => Promise<T>, clock: Clock): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble.kind === 'internal' || trouble.remedy !== 'retry' || failures === TRIES) throw error;
      await clock.sleep(pauseAfter(failures, trouble, clock.random()), new AbortController().signal);
    }
  }
}
