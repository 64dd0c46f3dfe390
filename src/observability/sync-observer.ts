import type { Clock } from '../core/clock.js';
import { classifyError } from '../core/errors.js';
import { filterParameters, runsOnlyIn, UNFILTERED } from '../core/feed-filters.js';
import type { AnsweringCache, Stage, SyncObserver } from '../sync/ports/index.js';
import type { Liveness } from './admin/liveness.js';
import type { FeedState } from './feed-state.js';
import type { FailureLog } from './log/failure-log.js';
import type { LogFields, Logger } from './log/logger.js';
import { createRoleLog } from './log/role-log.js';
import { createThrottledLines } from './log/throttled-lines.js';
import type { FeedMetrics } from './metrics/metrics.js';
import type { PassTracker } from './pass-tracker.js';
import { createRecentHistory } from './status-page/recent-history.js';
import type { CurrentPass, StatusReport } from './status-page/status-report.js';
import type { PageTracer } from './tracing/tracer.js';

interface SyncObserverOptions {
  readonly feed: string;
  readonly version: string;
  readonly state: FeedState;
  readonly metrics: FeedMetrics;
  readonly logger: Logger;
  /** Called with the announced duration of the next step of the loop, milliseconds. */
  readonly onTick: Liveness['ticked'];
  readonly clock: Clock;
  readonly failures: FailureLog<Stage>;
  readonly passes: PassTracker;
  /** Null or missing: no traces are exported. */
  readonly tracer?: PageTracer | null;
}

/** Stages that only the leader runs. */
const LEADER_STAGES: readonly Stage[] = ['feed', 'result', 'recent', 'full', 'history', 'backfill'];

/** Turns the reports of the engine into metrics, log lines, the status report and its charts. */
export function observeSync(options: SyncObserverOptions) {
  const { feed, version, state, metrics, logger, onTick, failures, passes, clock } = options;
  const startedAt = new Date(clock.now()).toISOString();
  const role = createRoleLog(logger, clock, passes);
  const lines = createThrottledLines(logger, clock);
  const history = createRecentHistory(clock, state);
  let runsWritten = 0;
  const activityFields = () => ({ lagSeconds: rounded(state.lagSeconds()), ...passFields(passes.report()) });
  const warn = (message: string, counts: Readonly<Record<string, number>>, fields: LogFields) =>
    lines.add('warn', message, counts, () => fields);
  /** Updates the state, and records the lag before it, when it is highest, and after it. */
  const update = (change: () => void) => {
    history.awake();
    change();
    history.awake();
  };

  const observer: SyncObserver = {
    ticked(nextStepMs) {
      onTick(nextStepMs);
      history.awake();
      lines.tick();
    },
    polled(outcome, entries) {
      metrics.polled(outcome);
      // One line per page at level debug: from the commit if there are entries, from the failure log if the poll failed.
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
      if (entries > 0) {
        logger.debug('committed', numbers);
        lines.add('info', 'activity', { entries, inserted, updated, quarantined }, activityFields);
      }
      if (quarantined > 0) {
        warn('quarantined entries', { entries: quarantined }, { remedy: 'see `scanfeed quarantine list`' });
      }
      if (conflicts > 0) {
        const remedy =
          'the stored content is kept; `scanfeed verify` lists the runs; ask the operators of the service why';
        warn('revision redelivered with different content', { entries: conflicts }, { remedy });
      }
    },
    pageStored: (page) => options.tracer?.pageStored(page, feed),
    freshness: (read) => update(() => state.setFreshness(read)),
    truncated: metrics.truncated,
    failed(stage, error, pauseMs) {
      metrics.failed(stage, classifyError(error).kind);
      history.failed();
      failures.failed(stage, error, pauseMs);
    },
    recovered: failures.recovered,
    status(read) {
      const [before, until] = [iso(state.status()?.acceptsBadUntil), iso(read.acceptsBadUntil)];
      if (until !== before)
        logger.warn(until === null ? 'no longer accepting unusable entries' : 'accepting unusable entries', { until });
      update(() => state.setStatus(read));
      role.checked(read.leaseHolder);
      lines.tick();
    },
    reconciled(found) {
      metrics.reconciled(found);
      if (found.first + found.later === 0) return;
      const remedy = 'none: they are stored now; if this is frequent, ask the operators of the service';
      warn('found runs that the cursor skipped', { ...found }, { remedy });
    },
    reading: (what, progress) => passes.update(what, progress),
    passFinished: (pass) => passes.finished(pass),
    filtersChanged(before, now) {
      const [hidden, added] = [runsOnlyIn(before, now), runsOnlyIn(now, before)];
      if (hidden.length > 0) logger.warn('filters changed: runs no longer updated', { runs: hidden });
      if (added.length > 0) {
        const remedy = 'the next full pass loads them; `scanfeed reconcile --full` runs it now';
        logger.warn('filters changed: earlier runs are missing', { runs: added, remedy });
      }
    },
    pageLimited: (entries, error) =>
      logger.info('page size changed', { entries, ...(error === undefined ? {} : { error }) }),
    cursorReset(to) {
      metrics.cursorReset();
      logger.warn('cursor rejected, resuming from another position', { fromCursor: to.cursor !== null });
    },
    stuck(stuck) {
      if (!stuck) return logger.info('cursor advances again');
      logger.warn('feed stuck: cursor does not advance', {
        reason:
          'the cursor that the service returns is missing, does not move or repeats; the position is polled again',
        remedy: 'ask the operators of the service, or see `scanfeed rewind`',
      });
    },
    endHidden: () =>
      logger.warn('end of feed not recognized', {
        reason:
          'the service accepts a cursor only with the filters that it was issued for, and the last cursor is missing or changes with each poll. So the end cannot be recognized, and the lag grows',
        remedy: `set the filters ${filterParameters(UNFILTERED)
          .map(([name, value]) => `${name}=${value}`)
          .join(' and ')}, and no others`,
      }),
    leading(aliveUntil) {
      update(() => state.setLeader(aliveUntil));
      if (aliveUntil === null) {
        lines.flush();
        for (const stage of LEADER_STAGES) failures.reset(stage);
      }
      role.leading(aliveUntil !== null);
      lines.tick();
    },
    caughtUp(polledAt) {
      state.setCaughtUp(polledAt);
      if (polledAt !== null) role.caughtUp();
    },
  };

  const report = (): StatusReport => {
    const status = state.status();
    return {
      feed,
      version,
      startedAt,
      role: state.isLeader() ? 'leader' : status === null ? 'starting' : 'standby',
      leaseHolder: status?.leaseHolder ?? null,
      caughtUp: state.isCaughtUp(),
      initialSyncComplete: status?.initialSyncComplete ?? false,
      dataCompleteAsOf: iso(state.freshness()?.dataCompleteAsOf),
      lagSeconds: state.lagSeconds(),
      lastPollAt: iso(status?.lastPollAt),
      lastCommitAt: iso(status?.lastCommitAt),
      lastDeliveredAt: iso(status?.lastDeliveredAt),
      stuckSince: iso(status?.stuckSince),
      acceptsBadUntil: iso(status?.acceptsBadUntil),
      runsWritten,
      passes: passes.report(),
      pendingResults: status?.pendingResults ?? null,
      quarantinedEntries: status?.quarantinedEntries ?? null,
      runsWithoutData: status?.runsWithoutData ?? null,
      currentErrors: failures.current(),
    };
  };

  /** Warns that a cache gave a response of the service. */
  const answeredByCache = ({ evidence, name }: AnsweringCache) => {
    const remedy = 'exclude the service from this cache: it delays new runs, and may mix up organizations';
    warn('a cache served requests', { responses: 1 }, { cache: name, evidence, remedy });
  };

  return { observer, report, recent: history.minutes, answeredByCache };
}

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
