import type { Clock } from '../../core/clock.js';
import type { LogFields, Logger } from './logger.js';

/** Period that one line covers, milliseconds. */
const PERIOD_MS = 60_000;

/** Counts since the last line. */
const NOTHING = {
  /** Pages of the feed that had entries. */
  pages: 0,
  /** Entries committed, of the feed and of passes. */
  entries: 0,
  inserted: 0,
  updated: 0,
  quarantined: 0,
  /** Truncated results loaded, before a commit or later. */
  resolved: 0,
  failures: 0,
};
type Activity = typeof NOTHING;

/**
 * Logs the activity once a minute, and nothing while idle. It has no timer: each call checks the time.
 * @param state returns further fields of each line
 */
export function createActivityLog(logger: Logger, { monotonic }: Clock, state: () => LogFields) {
  let begunAt: number | null = null;
  let counts: Activity = { ...NOTHING };

  const flush = () => {
    if (begunAt === null) return;
    logger.info('activity', { seconds: Math.round((monotonic() - begunAt) / 1000), ...counts, ...state() });
    begunAt = null;
    counts = { ...NOTHING };
  };
  return {
    add(done: Partial<Activity>): void {
      for (const [name, count] of Object.entries(done) as [keyof Activity, number][]) counts[name] += count;
      if (Object.values(done).some((count) => count > 0)) begunAt ??= monotonic();
    },
    /** Counts a failure. A failure alone causes no line: the failure log reports it. */
    failed(): void {
      if (begunAt !== null) counts.failures += 1;
    },
    /** Logs the line if it is due. */
    tick(): void {
      if (begunAt !== null && monotonic() - begunAt >= PERIOD_MS) flush();
    },
    /** Logs the counts since the last line. */
    flush,
  };
}
