import type { Clock } from '../core/clock.js';
import { classifyError } from '../core/errors.js';
import type { FeedStatus, Freshness, Stage, SyncObserver } from '../sync/ports/index.js';
import type { Liveness } from './admin/liveness.js';
import { createActivityLog } from './log/activity.js';
import { createFailureLog, type Outage } from './log/failure-log.js';
import type { Logger } from './log/logger.js';
import { createRoleLog } from './log/role-log.js';
import { createThrottledWarnings } from './log/throttled-warnings.js';
import { fresher, lagSeconds } from './metrics/freshness.js';
import type { Metrics } from './metrics/metrics.js';
import { createReadings } from './readings.js';
import { createRecentHistory } from './status-page/recent-history.js';
import type { CurrentPass, StatusReport } from './status-page/status-report.js';

interface SyncObserverOptions {
  readonly feed: string;
  readonly version: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly liveness: Liveness;
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Called with each change of an outage that is in the log. */
  readonly onOutage?: (outage: Outage) => void;
}

/** Stages of the leader alone. */
const LEADER_STAGES: readonly Stage[] = ['feed', 'result', 'recent', 'full', 'history', 'backfill'];

/** Turns the reports of the engine into metrics, log lines, the status report, and the last hours of its charts. */
export function observeSync(options: SyncObserverOptions) {
  const { feed, version, metrics, logger, liveness, clock } = options;
  const startedAt = new Date(clock.now()).toISOString();
  const failures = createFailureLog<Stage>({ logger, clock, onChange: options.onOutage ?? (() => {}) });
  const readings = createReadings(logger, metrics, clock);
  const role = createRoleLog(logger, clock, readings);
  const warnings = createThrottledWarnings(logger, clock);
  const history = createRecentHistory(clock);
  let status: FeedStatus | null = null;
  let asOf: Freshness | null = null;
  let runsWritten = 0;
  const activity = createActivityLog(logger, clock, () => ({
    lagSeconds: rounded(lagSeconds(asOf, clock.monotonic())),
    ...passFields(readings.report()),
  }));

  /** Writes the lines that are due. */
  const tick = () => {
    activity.tick();
    warnings.tick();
  };
  const learn = (read: Freshness) => {
    asOf = fresher(asOf, read);
    history.knows(read);
  };

  const observer: SyncObserver = {
    ticked(nextStepMs) {
      liveness.ticked(nextStepMs);
      history.awake();
      tick();
    },
    polled(outcome, entries) {
      metrics.polled(outcome);
      if (entries > 0) activity.add({ pages: 1 });
      // One line a page: the commit's where there was something to commit, the failure's where it failed.
      if (outcome !== 'failed') logger[entries > 0 ? 'trace' : 'debug']('polled the feed', { outcome, entries });
    },
    committed(counts, deliveries) {
      metrics.committed(counts);
      runsWritten += counts.inserted + counts.updated;
      history.wrote(counts.inserted + counts.updated);
      metrics.delivered(deliveries);
      const { stored, ...numbers } = counts;
      const { inserted, updated, unchanged, stale, quarantined, conflicts } = counts;
      const entries = inserted + updated + unchanged + stale + quarantined;
      activity.add({ entries, inserted, updated, quarantined });
      if (entries > 0) logger.debug('committed', numbers);
      if (quarantined > 0) {
        warnings.warn(
          'entries went to quarantine',
          { entries: quarantined },
          { remedy: 'see `scanfeed quarantine list`' },
        );
      }
      if (conflicts > 0) {
        const remedy = 'ask the operators of the service why; `scanfeed verify` names the runs';
        const message = 'a revision was delivered again with other content; the first is kept';
        warnings.warn(message, { entries: conflicts }, { remedy });
      }
    },
    freshness(read) {
      learn(read);
      metrics.setFreshness(read);
    },
    truncated(outcome, entries) {
      metrics.truncated(outcome, entries);
      if (outcome === 'resolved') activity.add({ resolved: entries });
    },
    failed(stage, error, _, pauseMs) {
      metrics.failed(stage, classifyError(error).kind);
      activity.failed();
      history.failed();
      failures.failed(stage, error, pauseMs);
    },
    recovered: (stage) => failures.recovered(stage),
    adopted(results) {
      logger.info('took over pending results of feeds that no process has led for a day', { results });
    },
    status(read) {
      status = read;
      learn(read);
      metrics.setStatus(read);
      role.checked(read.leaseHolder);
      tick();
    },
    reconciled(found) {
      metrics.reconciled(found);
      if (found.first + found.later === 0) return;
      const remedy = 'nothing: they are stored; where it is often, ask the operators of the service';
      warnings.warn('found runs that the cursor skipped', { ...found }, { remedy });
    },
    reading: (what, progress) => readings.update(what, progress),
    passFinished: (pass) => readings.finished(pass),
    filtersChanged({ hides, leavesBehind }) {
      if (hides.length > 0) {
        logger.warn('the filters have changed: some runs are no longer kept in step', { runs: hides });
      }
      if (leavesBehind.length > 0) {
        const remedy = 'the next full pass loads them; `scanfeed reconcile --full` runs it now';
        logger.warn('the filters have changed: runs that lie behind the cursor are missing', {
          runs: leavesBehind,
          remedy,
        });
      }
    },
    pageLimited: (entries, error) =>
      logger.info('page size changed', { entries, ...(error === undefined ? {} : { error }) }),
    cursorReset(to) {
      metrics.cursorReset();
      logger.warn('the service rejected the cursor; going on from elsewhere', { fromCursor: to.cursor !== null });
    },
    stuck(stuck) {
      if (!stuck) return logger.info('the cursor leads on again');
      logger.warn(
        'the cursor that the service gives is missing, stands still or goes in circles; entries are stored, and it is asked again at every poll interval',
        { remedy: 'ask the operators of the service, or see `scanfeed rewind`' },
      );
    },
    leading(until) {
      metrics.setLeader(until);
      history.leading(until);
      if (until === null) {
        activity.flush();
        warnings.flush();
        for (const stage of LEADER_STAGES) failures.reset(stage);
      }
      role.leading(until !== null);
      tick();
    },
    caughtUp(polledAt) {
      metrics.setCaughtUp(polledAt);
      if (polledAt !== null) role.caughtUp();
    },
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
    passes: readings.report(),
    pendingResults: status?.pendingResults ?? null,
    quarantinedEntries: status?.quarantinedEntries ?? null,
    currentErrors: failures.current(),
  });

  return { observer, report, recent: history.minutes };
}

/** The progress of each pass, by its kind. */
function passFields(passes: readonly CurrentPass[]) {
  if (passes.length === 0) return {};
  return { passes: Object.fromEntries(passes.map(({ pass, ...progress }) => [pass, progress])) };
}

function rounded(seconds: number | null): number | null {
  return seconds === null ? null : Math.round(seconds * 10) / 10;
}

function iso(time: Date | null | undefined): string | null {
  return time?.toISOString() ?? null;
}
