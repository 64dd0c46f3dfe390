import type { Backfill, Clock, Reading, ReadingProgress } from '../sync/ports.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';
import type { CurrentReading } from './status-report.js';

/** A reading that lasts this long gets its first line in the log; then it has one a minute. */
const FIRST_LINE_MS = 10_000;
const LINE_EVERY_MS = 60_000;

/** Without another page for so long, the pace of before says nothing any more. */
export const PACE_HOLDS_MS = 60_000;

const DOING: Readonly<Record<Reading, string>> = {
  feed: 'reading the feed from behind its end',
  history: 'reading the history behind the feed',
  request: 'reading a stretch of the feed that was asked for',
};

const DONE: Readonly<Record<Reading, string>> = {
  feed: 'reached the end of the feed',
  history: 'read the history behind the feed to its end',
  request: 'read the stretch of the feed that was asked for',
};

/** What is being read from behind, in the log, in metrics and in the status report. */
export interface Readings {
  told(what: Reading, progress: ReadingProgress | null): void;
  finished(backfill: Backfill): void;
  report(): readonly CurrentReading[];
}

interface Current {
  readonly begunAt: number;
  readonly loggedAt: number | null;
  readonly toldAt: number;
  readonly progress: ReadingProgress;
}

export function createReadings(logger: Logger, metrics: Metrics, clock: Pick<Clock, 'monotonic'>): Readings {
  const current = new Map<Reading, Current>();

  const told: Readings['told'] = (what, progress) => {
    metrics.setReading(what, progress);
    const before = current.get(what);
    if (progress === null) {
      current.delete(what);
      if (what === 'feed' && before?.loggedAt != null) logger.info(DONE.feed, { entries: before.progress.entries });
      return;
    }
    const now = clock.monotonic();
    const begunAt = before?.begunAt ?? now;
    const loggedAt = before?.loggedAt ?? null;
    const isDue = loggedAt === null ? now - begunAt >= FIRST_LINE_MS : now - loggedAt >= LINE_EVERY_MS;
    if (isDue) logger.info(DOING[what], fieldsOf(progress));
    current.set(what, { begunAt, loggedAt: isDue ? now : loggedAt, toldAt: now, progress });
  };

  return {
    told,
    finished: ({ kind, since, until, entries, stored }) =>
      logger.info(DONE[kind], { since: since?.toISOString() ?? null, until: until.toISOString(), entries, stored }),
    report: () =>
      [...current].map(([reading, { progress, toldAt }]) => {
        const holds = clock.monotonic() - toldAt < PACE_HOLDS_MS;
        return { reading, ...fieldsOf(holds ? progress : { ...progress, pace: null }) };
      }),
  };
}

function fieldsOf({ entries, deliveredUpTo, pace }: ReadingProgress) {
  const secondsLeft = pace?.secondsLeft ?? null;
  return {
    entries,
    deliveredUpTo: deliveredUpTo?.toISOString() ?? null,
    entriesPerSecond: pace === null ? null : Math.round(pace.entriesPerSecond * 10) / 10,
    secondsLeft: secondsLeft === null ? null : Math.round(secondsLeft),
  };
}
