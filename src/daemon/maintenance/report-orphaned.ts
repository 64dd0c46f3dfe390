import { findOrphaned, type OrphanedResults } from '../../storage/runs/pending.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';
import { hourly } from './pacing.js';

/** Logs orphaned pending results: once per feed, and again when their number changes. */
export function reportOrphaned({ connection, logger, clock }: MaintenanceContext): MaintenanceTask {
  let logged = new Map<string, number>();
  return hourly(clock, async function* () {
    const orphaned = await findOrphaned(connection);
    for (const results of orphaned) {
      if (logged.get(results.feed) !== results.results) {
        logger.warn('found orphaned pending results', describeOrphaned(results));
      }
    }
    logged = new Map(orphaned.map(({ feed, results }) => [feed, results]));
  });
}

function describeOrphaned({ feed, baseUrl, results }: OrphanedResults) {
  const remedy = `their feed had no leader for a day, and no other feed has its address; if its service has moved, run \`scanfeed adopt --feed ${feed}\` with the new address in SCANFEED_BASE_URL; if it is gone, run \`scanfeed resolve --all --give-up --feed ${feed}\``;
  return { orphanedFeed: feed, baseUrl, results, remedy };
}
