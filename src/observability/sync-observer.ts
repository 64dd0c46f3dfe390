import { troubleOf } from '../outcome/trouble.js';
import type { AsOf, Clock, FeedStatus, Stage, SyncObserver } from '../sync/ports.js';
import { describeError } from './describe-error.js';
import type { Liveness } from './liveness.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';
import { createReadings } from './readings.js';
import type { CurrentTrouble, StatusReport } from './status-report.js';

export interface SyncObserverOptions {
  readonly feed: string;
  readonly version: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly liveness: Liveness;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** Turns what the engine tells into metrics, log lines and the status report. */
export interface ObservedSync {
  readonly observer: SyncObserver;
  report(): StatusReport;
}

/** Only who holds the feed does these. */
const LEADERS_STAGES: readonly Stage[] = ['feed', 'result', 'sweep', 'backfill'];

/** Failures in a row after which a trouble that goes on is logged again: each time they doubled. */
const isWorthLogging = (failures: number) => Number.isInteger(Math.log2(failures));

export function observeSync(options: SyncObserverOptions): ObservedSync {
  const { feed, version, metrics, logger, liveness, clock } = options;
  const startedAt = new Date(clock.now()).toISOString();
  const troubles = new Map<Stage, CurrentTrouble>();
  const readings = createReadings(logger, metrics, clock);
  let status: FeedStatus | null = null;
  let asOf: AsOf | null = null;
  let leading = false;
  let runsWritten = 0;

  const learn = (read: AsOf) => {
    if (asOf === null || read.readAt >= asOf.readAt) asOf = read;
  };

  const observer: SyncObserver = {
    ticked: (nextStepMs) => liveness.ticked(nextStepMs),
    polled(outcome, entries) {
      metrics.polled(outcome);
      logger.debug('polled the feed', { outcome, entries });
    },
    committed(counts, deliveries) {
      metrics.committed(counts);
      runsWritten += counts.inserted + counts.updated;
      metrics.delivered(deliveries);
      const { stored, ...numbers } = counts;
      logger.debug('committed', numbers);
      if (counts.quarantined > 0) logger.warn('entries went to quarantine', { entries: counts.quarantined });
      if (counts.conflicts > 0) {
        logger.warn('a revision was delivered again with other content; the first is kept', {
          entries: counts.conflicts,
        });
      }
    },
    freshness(read) {
      learn(read);
      metrics.setFreshness(read);
    },
    truncated: (outcome, entries) => metrics.truncated(outcome, entries),
    failed(stage, error, failures, pauseMs) {
      const { kind, remedy } = troubleOf(error);
      metrics.failed(stage, kind);
      const since = troubles.get(stage)?.since ?? new Date(clock.now()).toISOString();
      troubles.set(stage, { stage, kind, message: describeError(error).message, since, failures });
      if (!isWorthLogging(failures)) return;
      const fields = { stage, kind, failures, pauseMs, error };
      if (remedy === 'hold') logger.error('holding: this will not pass by itself', fields);
      else logger.warn('failed, and will be tried again', fields);
    },
    recovered(stage, failures) {
      troubles.delete(stage);
      logger.info('works again', { stage, failures });
    },
    adopted(results) {
      logger.info('took over pending results of feeds that no process has led for a day', { results });
    },
    status(read) {
      status = read;
      learn(read);
      metrics.setStatus(read);
    },
    reconciled(found) {
      metrics.reconciled(found);
      if (found.first + found.later > 0) logger.warn('a sweep found runs that the cursor had passed by', { ...found });
    },
    reading: (what, progress) => readings.told(what, progress),
    backfilled: (backfill) => readings.finished(backfill),
    filtersChanged({ hides, leavesBehind }) {
      if (hides.length > 0) {
        logger.warn('the filters have changed: some runs are no longer kept in step', { runs: hides });
      }
      if (leavesBehind.length > 0) {
        const remedy = 'the next full sweep loads them; `scanfeed reconcile --full` runs it now';
        logger.warn('the filters have changed: runs that lie behind the cursor are missing', {
          runs: leavesBehind,
          remedy,
        });
      }
    },
    pageLimited: (entries) => logger.info('pages are asked for with another number of entries', { entries }),
    cursorReset(to) {
      metrics.cursorReset();
      logger.warn('the service rejected the cursor; going on from elsewhere', { fromCursor: to.cursor !== null });
    },
    stuck(stuck) {
      if (!stuck) return logger.info('the cursor leads on again');
      logger.warn(
        'the cursor that the service gives is missing, stands still or goes in circles; entries are stored, and it is asked again at every poll interval',
      );
    },
    leading(until) {
      metrics.setLeader(until);
      if (leading !== (until !== null)) logger.info(until === null ? 'gave the feed up' : 'took the feed');
      leading = until !== null;
      // What these stages failed at is the next leader's to meet.
      if (until === null) for (const stage of LEADERS_STAGES) troubles.delete(stage);
    },
    caughtUp: (polledAt) => metrics.setCaughtUp(polledAt),
  };

  const report = (): StatusReport => ({
    feed,
    version,
    startedAt,
    role: metrics.isLeader() ? 'leader' : status === null ? 'starting' : 'standby',
    leaseHolder: status?.leaseHolder ?? null,
    caughtUp: metrics.isCaughtUp(),
    backfillComplete: status?.backfillComplete ?? false,
    dataCompleteAsOf: iso(asOf?.dataCompleteAsOf),
    lagSeconds: lagSeconds(asOf, clock.monotonic()),
    lastPollAt: iso(status?.lastPollAt),
    lastCommitAt: iso(status?.lastCommitAt),
    stuckSince: iso(status?.stuckSince),
    runsWritten,
    readings: readings.report(),
    pendingResults: status?.pendingResults ?? null,
    quarantinedEntries: status?.quarantinedEntries ?? null,
    troubles: [...troubles.values()],
  });

  return { observer, report };
}

function iso(time: Date | null | undefined): string | null {
  return time?.toISOString() ?? null;
}

function lagSeconds(asOf: AsOf | null, monotonicNow: number): number | null {
  return asOf === null || asOf.lagMs === null ? null : Math.max(0, asOf.lagMs + monotonicNow - asOf.readAt) / 1000;
}
