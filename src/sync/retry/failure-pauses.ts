import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { FeedService } from '../ports/index.js';
import { linkedSignal } from '../waiting/linked-signal.js';
import { sleepUntilAny } from '../waiting/wake-up.js';

export type FailurePauses = ReturnType<typeof createFailurePauses>;

/**
 * The pauses of a feed after failures. They grow to a minute, and end when the database answers again after an outage: the feed is read
 * at least every 10 s, which shows whether it does. Those after a refusal of the service end when the key changes.
 */
export function createFailurePauses(clock: Clock, { keyChanged }: Pick<FeedService, 'keyChanged'>) {
  let recovery = new AbortController();
  return {
    /** Called when a read of the feed was answered. */
    answered: (): void => {
      recovery.abort(WAIT_OVER);
      recovery = new AbortController();
    },
    pauseAfterFailure: async (error: unknown, ms: number, signal: AbortSignal): Promise<void> => {
      const { action, kind, ofDatabase } = classifyError(error);
      // Errors that need an operator are responses of a reachable database. If statements wait too long for a connection, it is
      // overloaded: reads of the feed, which have connections of their own, are answered meanwhile, and must not end the pauses.
      if (ofDatabase && action === 'retry' && kind !== 'pool_exhausted') {
        await sleepUntilAny(clock, ms, signal, recovery.signal);
      } else if (!ofDatabase && action === 'hold' && keyChanged !== undefined) {
        const pause = linkedSignal(signal);
        await Promise.race([clock.sleep(ms, pause.signal), keyChanged(pause.signal)]);
        pause.abort();
        pause.unlink();
      } else await clock.sleep(ms, signal);
    },
  };
}
