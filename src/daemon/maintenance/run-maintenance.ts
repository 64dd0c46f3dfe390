import { createFailureLog } from '../../observability/log/failure-log.js';
import { notifyChanges } from '../../storage/reporting/notify-changes.js';
import { deleteExpired } from './delete-expired.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';
import { runInTurns } from './pacing.js';
import { refreshViews } from './refresh-views.js';
import { reportOrphaned } from './report-orphaned.js';

/**
 * Runs the maintenance tasks of the leader, apart from the feed and its commits: notifies readers of changes, builds typed views for
 * new documents, deletes expired rows and reports orphaned pending results. A task that fails is logged and retried; it never delays the feed.
 * Resolves after the signal has aborted; never rejects.
 */
export async function runMaintenance(context: MaintenanceContext, signal: AbortSignal): Promise<void> {
  const { connection, limit, isLeader, logger, clock, checkIntervalMs, onOutage } = context;
  // A failed task blocks nothing else, so it is only a warning.
  const failures = createFailureLog<Task>({ logger, clock, holdLevel: 'warn', onOutage });
  let notified: string | null = null;
  const tasks: Readonly<Record<Task, MaintenanceTask>> = {
    // biome-ignore lint/correctness/useYield: it is one statement
    notifications: async function* () {
      notified = await notifyChanges(connection, notified);
    },
    views: refreshViews(context, signal),
    retention: deleteExpired(context, signal),
    orphaned: reportOrphaned(context),
  };
  while (!signal.aborted) {
    await clock.sleep(checkIntervalMs(), signal);
    for (const task of Object.keys(tasks) as Task[]) {
      if (signal.aborted) return;
      if (!isLeader()) {
        failures.reset(task);
        continue;
      }
      try {
        if (await runInTurns(tasks[task], limit, isLeader, signal)) failures.recovered(task);
      } catch (error) {
        if (!signal.aborted) failures.failed(task, error, checkIntervalMs());
      }
    }
  }
}

type Task = 'notifications' | 'views' | 'retention' | 'orphaned';
