import type { Clock } from '../../core/clock.js';
import type { PassTracker } from '../pass-tracker.js';
import type { Logger } from './logger.js';

/** Logs changes of the leader, and the end of each catch-up. */
export function createRoleLog(logger: Logger, { monotonic }: Clock, passes: PassTracker) {
  let leadingSince: number | null = null;
  let hasCaughtUp = false;
  let checks = 0;
  let loggedHolder: string | null = null;
  return {
    leading(isLeading: boolean): void {
      if (isLeading === (leadingSince !== null)) return;
      logger.info(isLeading ? 'started leading the feed' : 'stopped leading the feed');
      leadingSince = isLeading ? monotonic() : null;
      hasCaughtUp = false;
      checks = 0;
      loggedHolder = null;
    },
    /** Called after each read of the feed, with its leader. */
    checked(leaseHolder: string | null): void {
      if (leadingSince !== null) return;
      checks += 1;
      // The first check precedes the first attempt to take the feed: its holder may be gone.
      if (checks < 2 || leaseHolder === null || leaseHolder === loggedHolder) return;
      loggedHolder = leaseHolder;
      logger.info('standing by: another process leads', { leaseHolder });
    },
    /** Logs the first catch-up as leader, and later ones whose start was logged. */
    caughtUp(): void {
      if (leadingSince === null) return;
      const catchUp = passes.feed();
      if (hasCaughtUp && !catchUp?.isLogged) return;
      const ms = hasCaughtUp && catchUp !== null ? catchUp.ms : monotonic() - leadingSince;
      hasCaughtUp = true;
      logger.info('caught up with the feed', { entries: catchUp?.entries ?? 0, seconds: Math.round(ms / 100) / 10 });
    },
  };
}
