import type { Clock } from '../core/clock.js';
import { createFailureLog, type Outage } from '../observability/log/failure-log.js';
import type { Logger } from '../observability/log/logger.js';
import type { Metrics } from '../observability/metrics/metrics.js';
import type { DatabaseSettings } from '../settings/settings.js';
import type { StoreConnection } from '../storage/connection/store-connection.js';
import { hasNewDocuments } from '../storage/reporting/new-documents.js';
import { createDeletedRuns } from '../storage/runs/deleted-runs.js';
import { findOrphaned, type OrphanedResults } from '../storage/runs/pending.js';
import { refreshReports } from './refresh-reports.js';

const CHECK_INTERVAL_MS = 5_000;
const HOUR_MS = 3_600_000;
/** Rows deleted in one transaction: commits that wait for it are delayed by a few milliseconds. */
const PURGE_BATCH_ROWS = 500;
/** Time for typed views per check while a history is read, milliseconds; about half of it is rest. */
const SLICE_MS = CHECK_INTERVAL_MS / 50;

export interface MaintenanceContext {
  readonly settings: DatabaseSettings;
  readonly connection: StoreConnection;
  /** Whether this process leads the feed now. */
  readonly isLeader: () => boolean;
  readonly metrics: Pick<Metrics, 'isReadingInBulk' | 'purged'>;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called with each change of a logged outage. */
  readonly onOutage?: (outage: Outage) => void;
}

/**
 * Runs the maintenance tasks of the leader, apart from the feed and its commits: builds typed views for new documents, deletes
 * expired rows and reports orphaned pending results. A task that fails is logged and retried; it never delays the feed.
 * Resolves after the signal has aborted; never rejects.
 */
export async function runMaintenance(context: MaintenanceContext, signal: AbortSignal): Promise<void> {
  const { logger, clock, onOutage = () => {} } = context;
  // A failed task blocks nothing else, so it is only a warning.
  const failures = createFailureLog<Task>({ logger, clock, holdLevel: 'warn', onChange: onOutage });
  const tasks: Readonly<Record<Task, () => Promise<void>>> = {
    views: refreshViews(context, signal),
    retention: deleteExpired(context, signal),
    orphaned: reportOrphaned(context),
  };
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, signal);
    for (const task of Object.keys(tasks) as Task[]) {
      if (signal.aborted) return;
      if (!context.isLeader()) {
        failures.reset(task);
        continue;
      }
      try {
        await tasks[task]();
        failures.recovered(task);
      } catch (error) {
        if (!signal.aborted) failures.failed(task, error, CHECK_INTERVAL_MS);
      }
    }
  }
}

type Task = 'views' | 'retention' | 'orphaned';

/**
 * Builds typed views for new documents. Always runs once after the start: a new release may define views differently. While
 * the feed or its history is catching up, every document is new and PostgreSQL is the bottleneck, so each check searches only a
 * few documents. The first ones show the types and fields of most others; the rest follow once it has caught up.
 */
function refreshViews(
  { settings, connection, metrics, logger, clock }: MaintenanceContext,
  signal: AbortSignal,
): () => Promise<void> {
  let isDue = true;
  return async () => {
    if (!settings.typedViews) return;
    if (!isDue && !(await hasNewDocuments(connection))) return;
    isDue = true;
    const rest = createBatchRest(clock, signal);
    const since = clock.monotonic();
    const between = async () => {
      await rest();
      // Batches differ in duration: the next one starts only if the time left is at least what all of them took so far.
      const isTimeLeft = 2 * (clock.monotonic() - since) <= SLICE_MS;
      return isTimeLeft || !metrics.isReadingInBulk();
    };
    const { views, columns, built, failed } = await refreshReports(connection, settings.readerRole, between);
    if (built.length > 0) {
      logger.info('built typed views', { built: built.length, newViews: views, newColumns: columns });
    }
    if (failed[0] !== undefined) throw failed[0].error;
    isDue = false;
  };
}

/** Deletes runs, superseded revisions and quarantined content past the retention, in batches. */
function deleteExpired(
  { settings, connection, metrics, logger, clock }: MaintenanceContext,
  signal: AbortSignal,
): () => Promise<void> {
  const { retention } = settings;
  const deletedRuns = createDeletedRuns(connection);
  const kinds = [
    ['runs', retention.runs, deletedRuns.purgeRuns],
    ['run_history', retention.run_history, deletedRuns.purgeHistory],
    ['quarantine', retention.quarantine, deletedRuns.purgeQuarantine],
  ] as const;
  return hourly(clock, async () => {
    const rest = createBatchRest(clock, signal);
    const purged = { runs: 0, run_history: 0, quarantine: 0 };
    for (const [table, days, purgeBatch] of kinds) {
      if (days === null) continue;
      let rows: number;
      do {
        rows = await purgeBatch(days, PURGE_BATCH_ROWS);
        purged[table] += rows;
        metrics.purged(table, rows);
        await rest();
      } while (rows === PURGE_BATCH_ROWS);
    }
    if (Object.values(purged).some((number) => number > 0)) {
      const { run_history: runHistory, ...others } = purged;
      logger.info('deleted expired rows', { ...others, runHistory });
    }
  });
}

/** Logs orphaned pending results: once per feed, and again when their number changes. */
function reportOrphaned({ connection, logger, clock }: MaintenanceContext): () => Promise<void> {
  let logged = new Map<string, number>();
  return hourly(clock, async () => {
    const orphaned = await findOrphaned(connection);
    for (const results of orphaned) {
      if (logged.get(results.feed) !== results.results) {
        logger.warn('found orphaned pending results', describeOrphaned(results));
      }
    }
    logged = new Map(orphaned.map(({ feed, results }) => [feed, results]));
  });
}

/** Runs the work once an hour. Work that failed is due again at the next check. */
function hourly(clock: Clock, work: () => Promise<void>): () => Promise<void> {
  let nextAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (clock.monotonic() < nextAt) return;
    await work();
    nextAt = clock.monotonic() + HOUR_MS;
  };
}

function describeOrphaned({ feed, baseUrl, results }: OrphanedResults) {
  const remedy = `their feed had no leader for a day, and no other feed has its address; if its service has moved, run \`scanfeed adopt --feed ${feed} --base-url\` with the new address; if it is gone, run \`scanfeed resolve --all --give-up --feed ${feed}\``;
  return { orphanedFeed: feed, baseUrl, results, remedy };
}

/** Leaves the database to the feed: rests after a batch for as long as it took. Throws once the signal has aborted. */
function createBatchRest(clock: Clock, signal: AbortSignal): () => Promise<void> {
  let since = clock.monotonic();
  return async () => {
    await clock.sleep(clock.monotonic() - since, signal);
    signal.throwIfAborted();
    since = clock.monotonic();
  };
}
