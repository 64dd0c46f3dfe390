import type { Clock } from '../core/clock.js';
import type { Pass, PassKind, Reading, ReadingProgress } from '../sync/ports/index.js';
import type { Logger } from './log/logger.js';
import type { CurrentPass } from './status-page/status-report.js';

/** Time without another page after which a rate is no longer valid, milliseconds. */
const RATE_VALID_MS = 60_000;

/** Passes that run at full speed, and the feed while it catches up. */
const BULK: readonly Reading[] = ['feed', 'history', 'backfill'];

/** Duration after which a pass or a catch-up is logged, milliseconds. */
const LOGGED_AFTER_MS = 10_000;

const RUNNING: Readonly<Record<Reading, string>> = {
  feed: 'catching up with the feed',
  recent: 'running recent pass',
  full: 'running full pass',
  history: 'reading the history',
  backfill: 'running backfill',
};

const FINISHED: Readonly<Record<PassKind, string>> = {
  recent: 'finished recent pass',
  full: 'finished full pass',
  history: 'finished reading the history',
  backfill: 'finished backfill',
};

interface Current {
  readonly begunAt: number;
  readonly updatedAt: number;
  readonly isLogged: boolean;
  readonly progress: ReadingProgress;
}

export type PassTracker = ReturnType<typeof createPassTracker>;

/** Tracks the running passes, and the feed while it catches up, for the log, the metrics and the status report. */
export function createPassTracker(logger: Logger, { monotonic }: Clock) {
  const current = new Map<Reading, Current>();
  const isRecent = ({ updatedAt }: Current) => monotonic() - updatedAt < RATE_VALID_MS;
  /** Returns the progress of each; its pace is null if it is no longer valid. */
  const progress = () =>
    [...current].map(([pass, entry]) => ({
      pass,
      progress: isRecent(entry) ? entry.progress : { ...entry.progress, pace: null },
    }));

  return {
    /** @param progress null once it has ended */
    update: (what: Reading, progress: ReadingProgress | null) => {
      if (progress === null) return void current.delete(what);
      const now = monotonic();
      const { begunAt = now, isLogged = false } = current.get(what) ?? {};
      const isLong = now - begunAt >= LOGGED_AFTER_MS;
      if (isLong && !isLogged) logger.info(RUNNING[what], fieldsOf(progress));
      current.set(what, { begunAt, updatedAt: now, isLogged: isLogged || isLong, progress });
    },
    finished: ({ kind, since, until, entries, stored }: Pass) => {
      const fields = { since: since?.toISOString() ?? null, until: until.toISOString(), entries, stored };
      logger[kind === 'recent' ? 'debug' : 'info'](FINISHED[kind], fields);
    },
    progress,
    report: (): readonly CurrentPass[] => progress().map((each) => ({ pass: each.pass, ...fieldsOf(each.progress) })),
    /** Returns whether the feed is catching up, or a pass is running at full speed. */
    isReadingInBulk: () => [...current].some(([what, entry]) => BULK.includes(what) && isRecent(entry)),
    /** Returns the entries, duration in milliseconds and log state of the feed's catch-up, or null if it is not catching up. */
    feed: () => {
      const feed = current.get('feed');
      if (feed === undefined) return null;
      return { entries: feed.progress.entries, ms: monotonic() - feed.begunAt, isLogged: feed.isLogged };
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
