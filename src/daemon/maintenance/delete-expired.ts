import { createDeletedRuns } from '../../storage/runs/deleted-runs.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';
import { createBatchRest, hourly } from './pacing.js';

/** Rows deleted in one transaction: commits that wait for it are delayed by a few milliseconds. */
const PURGE_BATCH_ROWS = 500;

/** Deletes runs, superseded revisions and quarantined content past the retention, in batches. */
export function deleteExpired(
  { settings, connection, onPurged, logger, clock }: MaintenanceContext,
  signal: AbortSignal,
): MaintenanceTask {
  const { retention } = settings;
  const deletedRuns = createDeletedRuns(connection);
  const kinds = [
    ['runs', retention.runs, deletedRuns.purgeRuns],
    ['run_history', retention.run_history, deletedRuns.purgeHistory],
    ['quarantine', retention.quarantine, deletedRuns.purgeQuarantine],
  ] as const;
  return hourly(clock, async function* () {
    const purged = { runs: 0, run_history: 0, quarantine: 0 };
    for (const [table, days, purgeBatch] of kinds) {
      if (days === null) continue;
      let rows: number;
      do {
        const rest = createBatchRest(clock, signal);
        rows = await purgeBatch(days, PURGE_BATCH_ROWS);
        purged[table] += rows;
        onPurged(table, rows);
        await rest();
        yield;
      } while (rows === PURGE_BATCH_ROWS);
    }
    if (Object.values(purged).some((number) => number > 0)) {
      const { run_history: runHistory, ...others } = purged;
      logger.info('deleted expired rows', { ...others, runHistory });
    }
  });
}
