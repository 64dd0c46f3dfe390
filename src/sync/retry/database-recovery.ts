import { type Clock, WAIT_OVER } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import { sleepUntilAny } from '../waiting/wake-up.js';

export type DatabaseRecovery = ReturnType<typeof createDatabaseRecovery>;

/**
 * Ends the pauses of a feed when its database answers again after an outage: pauses after failures grow to a minute, while the lease is
 * renewed at least every 10 s, which shows whether the database answers.
 */
export function createDatabaseRecovery(clock: Clock) {
  let recovery = new AbortController();
  return {
    /** Called when a renewal was answered. */
    answered: (): void => {
      recovery.abort(WAIT_OVER);
      recovery = new AbortController();
    },
    /** Pauses after a failure; if the database may have been away, at the longest until it answers a renewal. */
    pauseAfterFailure: async (error: unknown, ms: number, signal: AbortSignal): Promise<void> => {
      const { action, kind, ofDatabase } = classifyError(error);
      // Errors that need an operator are answers of a reachable database. If statements wait too long for a connection, it is
      // overloaded: renewals, which have connections of their own, are answered meanwhile, and must not end the pauses.
      if (!ofDatabase || action !== 'retry' || kind === 'pool_exhausted') return clock.sleep(ms, signal);
      await sleepUntilAny(clock, ms, signal, recovery.signal);
    },
  };
}
