import type { Clock } from '../../core/clock.js';
import type { Readings } from '../readings.js';
import type { Logger } from './logger.js';

/** Logs who leads the feed, and when it has been read to its end, at each change. */
export function createRoleLog(
  logger: Pick<Logger, 'info'>,
  { monotonic }: Pick<Clock, 'monotonic'>,
  readings: Pick<Readings, 'feed'>,
) {
  let tookAt: number | null = null;
  let hasCaughtUp = false;
  let checks = 0;
  let loggedHolder: string | null = null;
  return {
    leading(isLeading: boolean): void {
      if (isLeading === (tookAt !== null)) return;
      logger.info(isLeading ? 'took the feed' : 'gave the feed up');
      tookAt = isLeading ? monotonic() : null;
      hasCaughtUp = false;
      checks = 0;
      loggedHolder = null;
    },
    /** Called with the holder each time that the lease was checked. */
    checked(leaseHolder: string | null): void {
      if (tookAt !== null) return;
      checks += 1;
      // The first check is before the first try to take the feed: its holder may be gone.
      if (checks < 2 || leaseHolder === null || leaseHolder === loggedHolder) return;
      loggedHolder = leaseHolder;
      logger.info('standing by: another process has the feed', { leaseHolder });
    },
    /** Logs the end only after the feed was taken, and after a catch-up that is in the log: a few new runs are no news. */
    caughtUp(): void {
      if (tookAt === null) return;
      const catchUp = readings.feed();
      if (hasCaughtUp && !catchUp?.isLogged) return;
      const ms = hasCaughtUp && catchUp !== null ? catchUp.ms : monotonic() - tookAt;
      hasCaughtUp = true;
      logger.info('caught up with the feed', { entries: catchUp?.entries ?? 0, seconds: Math.round(ms / 100) / 10 });
    },
  };
}
