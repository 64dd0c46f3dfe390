import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import { sleepUntilAny } from '../waiting/wake-up.js';

export type DatabaseRecovery = ReturnType<typeof createDatabaseRecovery>;

/**
 * Ends the pauses of a feed when its database answers again after an outage: pauses after failures grow to a minute, while the lease is
 * renewed at least every 10 s, which shows whether the database answers.
 */
export function createDatabaseRecovery(clock: Clock) {
  let isAway = false;
  let recovery = new AbortController();
  return {
    /** Called when a renewal failed. */
    failed: (error: unknown): void => {
      // Errors that need an operator are answers of a reachable database. If renewals wait too long for a connection, it is overloaded.
      const { action, kind } = classifyError(error);
      if (action === 'retry' && kind !== 'pool_exhausted') isAway = true;
    },
    /** Called when a renewal was answered. */
    answered: (): void => {
      if (!isAway) return;
      isAway = false;
      recovery.abort(WAIT_OVER);
      recovery = new AbortController();
    },
    /** Pauses after a failure, at the longest until the recovery. A `Retry-After` is never shortened. */
    pauseAfterFailure: async (error: unknown, ms: number, signal: AbortSignal): Promise<void> => {
      if (classifyError(error).retryAfterMs !== undefined) return clock.sleep(ms, signal);
      await sleepUntilAny(clock, ms, signal, recovery.signal);
    },
  };
}
