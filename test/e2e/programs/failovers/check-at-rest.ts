import { inventedRuns, missingRuns } from './check-claims.js';
import type { ClaimMonitor } from './claim-monitor.js';
import type { Cluster } from './cluster.js';
import type { FeedUnderTest } from './feeds.js';
import type { Listing } from './listing.js';
import type { FailoverOptions } from './run-failovers.js';

export interface RestFindings {
  /** Runs that were not stored at their highest revision. */
  readonly lost: number;
  /** Everything found, in words. */
  readonly problems: readonly string[];
}

/**
 * Waits until a feed has read everything that the service lists, and checks that everything is stored: without late runs
 * before a last backfill of everything, which could hide a loss, and with them after it.
 */
export async function checkAtRest(
  feed: FeedUnderTest,
  listing: Listing,
  {
    cluster,
    monitor,
    options,
  }: { cluster: Cluster; monitor: ClaimMonitor; options: Pick<FailoverOptions, 'log' | 'signal'> },
): Promise<RestFindings> {
  const { schema } = feed;
  const since = new Date();
  const holds = (what: string, condition: string) =>
    cluster.until(`${schema}: ${what}`, async () => {
      const [row] = await cluster.primary.rows<{ holds: boolean | null }>(
        `SELECT ${condition} AS holds FROM ${schema}.feeds, (SELECT $1::timestamptz AS since) AS rest`,
        [since],
      );
      return row?.holds === true;
    });
  const examine = async () => {
    const snapshot = await monitor.check(cluster.primary, feed, listing);
    if (snapshot === null) throw new Error(`${schema} cannot be read`);
    return snapshot;
  };

  await holds('everything is read', "data_complete_as_of > since AND complete_from = '-infinity'");
  if (feed.runsRecentPasses) await holds('a recent pass is finished', 'reconciled_as_of > since');
  if (feed.windowMs === Number.POSITIVE_INFINITY) {
    // An unfinished full pass is joined: it has been through failovers.
    await feed.run(['reconcile', '--full'], options.signal);
    await holds('a full pass is finished', 'reconciled_as_of IS NOT NULL');
  }
  const before = missingRuns(await examine(), listing, false);
  // An unfinished backfill would be joined, and may have missed late runs.
  await feed.run(['backfill', '--cancel'], options.signal);
  const exitCode = await feed.run(['backfill', '--beginning', '--wait'], options.signal);
  await holds('results are loaded', `NOT EXISTS (SELECT FROM ${schema}.runs WHERE result_state = 'pending')`);
  const last = await examine();
  const lost = new Set([...before, ...missingRuns(last, listing, true)]);
  const { revisions, backfills, reconciledAsOf } = last;
  options.log(
    `${schema} at rest: ${revisions.size} runs, ${lost.size} lost, ${backfills.length} backfills finished, ` +
      `reconciled as of ${reconciledAsOf === null ? 'never' : new Date(reconciledAsOf).toISOString()}`,
  );
  return {
    lost: lost.size,
    problems: [
      ...[...lost].map((text) => `lost in ${schema}: ${text}`),
      ...inventedRuns(last, listing).map((text) => `invented in ${schema}: ${text}`),
      ...(exitCode === 0 ? [] : [`${schema}: the last backfill ended with exit code ${exitCode}`]),
    ],
  };
}
