import type { Backfill, Clock, Reading, ReadingProgress } from '../sync/ports.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';
import type { CurrentReading } from './status-report.js';

/** A reading that lasts this long is told in the log. */
const TOLD_AFTER_MS = 10_000;

/** Without another page for so long, the pace of before says nothing any more. */
export const PACE_HOLDS_MS = 60_000;

const DOING: Readonly<Record<Reading, string>> = {
  feed: 'reading the feed from behind its end',
  history: 'reading the history behind the feed',
  request: 'reading a stretch of the feed that was asked for',
};

const DONE: Readonly<Record<Backfill['kind'], string>> = {
  history: 'read the history behind the feed to its end',
  request: 'read the stretch of the feed that was asked for',
};

interface Current {
  readonly begunAt: number;
  readonly toldAt: number;
  readonly inLog: boolean;
  readonly progress: ReadingProgress;
}

export type Readings = ReturnType<typeof createReadings>;

/** What is being read from behind, in the log, in metrics and in the status report. */
export function createReadings(logger: Logger, metrics: Metrics, { monotonic }: Pick<Clock, 'monotonic'>) {
  const current = new Map<Reading, Current>();

  return {
    told: (what: Reading, progress: ReadingProgress | null) => {
      metrics.setReading(what, progress);
      if (progress === null) return void current.delete(what);
      const now = monotonic();
      const { begunAt = now, inLog = false } = current.get(what) ?? {};
      const isLong = now - begunAt >= TOLD_AFTER_MS;
      if (isLong && !inLog) logger.info(DOING[what], fieldsOf(progress));
      current.set(what, { begunAt, toldAt: now, inLog: inLog || isLong, progress });
    },
    finished: ({ kind, since, until, entries, stored }: Backfill) =>
      logger.info(DONE[kind], { since: since?.toISOString() ?? null, until: until.toISOString(), entries, stored }),
    report: (): readonly CurrentReading[] =>
      [...current].map(([reading, { progress, toldAt }]) => {
        const holds = monotonic() - toldAt < PACE_HOLDS_MS;
        return { reading, ...fieldsOf(holds ? progress : { ...progress, pace: null }) };
      }),
    /** The feed, while it is read from behind: how much so far, in how many milliseconds, and whether the log tells of it. */
    feed: () => {
      const feed = current.get('feed');
      if (feed === undefined) return null;
      return { entries: feed.progress.entries, ms: monotonic() - feed.begunAt, told: feed.inLog };
    },
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
