import type { Metrics } from '../observability/metrics.js';
import type { Retention } from '../settings.js';
import { purgeHistory, purgeQuarantine, purgeRuns } from '../storage/deleted-runs.js';
import type { Database } from '../storage/pool.js';
import type { Tables } from '../storage/schema.js';

/** Removed at once: what waits for it waits some milliseconds. */
const BATCH = 500;

/** What was removed, by table. */
export type Purged = Record<'runs' | 'run_history' | 'quarantine', number>;

/**
 * Removes what is past the retention, batch by batch.
 * @param between called after each batch; may wait
 */
export async function purge(
  { sql }: Database,
  tables: Tables,
  retention: Retention,
  metrics: Pick<Metrics, 'purged'>,
  between: () => Promise<void>,
): Promise<Purged> {
  const kinds = [
    ['runs', retention.runs, purgeRuns],
    ['run_history', retention.runHistory, purgeHistory],
    ['quarantine', retention.quarantine, purgeQuarantine],
  ] as const;
  const purged: Purged = { runs: 0, run_history: 0, quarantine: 0 };
  for (const [table, days, purgeBatch] of kinds) {
    for (let found = BATCH; days !== null && found === BATCH; await between()) {
      found = await purgeBatch(sql, tables, days, BATCH);
      purged[table] += found;
      metrics.purged(table, found);
    }
  }
  return purged;
}
