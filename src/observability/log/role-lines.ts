import type { Clock } from '../../core/clock.js';
import type { Readings } from '../readings.js';
import type { Logger } from './logger.js';

/** Lines about who has the feed, and whether it has been read to its end. Each when it changes. */
export function createRoleLines(
  logger: Pick<Logger, 'info'>,
  { monotonic }: Pick<Clock, 'monotonic'>,
  readings: Pick<Readings, 'feed'>,
) {
  let tookAt: number | null = null;
  let hasCaughtUp = false;
  let looks = 0;
  let standsBehind: string | null = null;
  return {
    leading(isLeading: boolean): void {
      if (isLeading === (tookAt !== null)) return;
      logger.info(isLeading ? 'took the feed' : 'gave the feed up');
      tookAt = isLeading ? monotonic() : null;
      hasCaughtUp = false;
      looks = 0;
      standsBehind = null;
    },
    /** Figures were read, which name the holder; those who stand by read them at every look at the lease. */
    looked(leaseHolder: string | null): void {
      if (tookAt !== null) return;
      looks += 1;
      // The first look comes before the first try to take the feed: who is named then may be gone.
      if (looks < 2 || leaseHolder === null || leaseHolder === standsBehind) return;
      standsBehind = leaseHolder;
      logger.info('standing by: another process has the feed', { leaseHolder });
    },
    caughtUp(): void {
      if (tookAt === null) return;
      const behind = readings.feed();
      // Not each time that a few runs were new: after the feed was taken, and where the log said that it was behind.
      if (hasCaughtUp && !behind?.told) return;
      const ms = hasCaughtUp && behind !== null ? behind.ms : monotonic() - tookAt;
      hasCaughtUp = true;
      logger.info('caught up with the feed', { entries: behind?.entries ?? 0, seconds: Math.round(ms / 100) / 10 });
    },
  };
}
