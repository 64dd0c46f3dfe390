import { findOrphaned } from '../../storage/operator/forget-feed.js';
import type { MaintenanceContext, MaintenanceTask } from './maintenance-context.js';
import { hourly } from './pacing.js';

/** Logs what no process works on: once per feed, and again when it changes. */
export function reportOrphaned({ connection, logger, clock }: MaintenanceContext): MaintenanceTask {
  let logged: ReadonlySet<string> = new Set();
  return hourly(clock, async function* () {
    const orphaned = new Map((await findOrphaned(connection)).map((found) => [JSON.stringify(found), found]));
    for (const [key, { feed: orphanedFeed, ...left }] of orphaned) {
      if (!logged.has(key)) {
        logger.warn('found orphaned pending results', { orphanedFeed, ...left, remedy: remedyFor(orphanedFeed) });
      }
    }
    logged = new Set(orphaned.keys());
  });
}

/** Returns what to do about a feed without a leader that still has pending results or open entries. */
export function remedyFor(feed: string): string {
  return `no process leads the feed; start it, or if it is retired, hand them to another feed with \`scanfeed forget ${feed} --to OTHER\``;
}
