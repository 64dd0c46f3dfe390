import type { Clock } from '../../core/clock.js';
import type { CommitCounts } from '../../core/counts.js';
import type { LogFields, Logger } from './logger.js';

/** What is done within this time is told in one line. */
const PERIOD_MS = 60_000;

/** What was done since the last line that told of it. */
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
type Done = typeof NOTHING;

/**
 * Logs once a minute what was done, and nothing if nothing was. It has no timer: each report checks the time.
 * @param besides what the line says further, read when it is written
 */
export function createActivity(
  logger: Pick<Logger, 'info'>,
  { monotonic }: Pick<Clock, 'monotonic'>,
  besides: () => LogFields,
) {
  let begunAt: number | null = null;
  let done = { ...NOTHING };

  const tell = (now: number) => {
    if (begunAt === null) return;
    logger.info('activity', { seconds: Math.round((now - begunAt) / 1000), ...done, ...besides() });
    begunAt = null;
    done = { ...NOTHING };
  };
  const add = (what: Partial<Done>) => {
    begunAt ??= monotonic();
    for (const [name, count] of Object.entries(what) as [keyof Done, number][]) done[name] += count;
  };

  return {
    paged: () => add({ pages: 1 }),
    committed: (counts: CommitCounts) => {
      const { inserted, updated, unchanged, stale, quarantined } = counts;
      const entries = inserted + updated + unchanged + stale + quarantined;
      if (entries > 0) add({ entries, inserted, updated, quarantined });
    },
    resolved: (results: number) => {
      if (results > 0) add({ resolved: results });
    },
    // By itself no activity: an outage has lines of its own.
    failed: () => {
      if (begunAt !== null) done.failures += 1;
    },
    /** Called often: writes the line where it is due. */
    passed: () => {
      const now = monotonic();
      if (begunAt !== null && now - begunAt >= PERIOD_MS) tell(now);
    },
    /** Writes the rest, where nothing more will come. */
    over: () => tell(monotonic()),
  };
}
