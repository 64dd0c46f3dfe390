import { createEntryComparison } from './compare-entries.js';
import { createDeletedRuns } from './deleted-runs.js';
import { createFeedReports } from './feed-report.js';
import { createFeeds } from './feeds.js';
import { createPendingResults } from './pending-results.js';
import { createQuarantinedEntries } from './quarantined-entries.js';
import { createPassRequests } from './request-pass.js';
import type { StoreConnection } from './store-connection.js';

export type OperatorStore = ReturnType<typeof createOperatorStore>;

/** PostgreSQL as the commands of operators use it, beside a running daemon. */
export function createOperatorStore(connection: StoreConnection) {
  return {
    connection,
    feeds: createFeeds(connection),
    passes: createPassRequests(connection),
    pending: createPendingResults(connection),
    quarantine: createQuarantinedEntries(connection),
    deletedRuns: createDeletedRuns(connection),
    readFeedReports: createFeedReports(connection),
    compareEntries: createEntryComparison(connection),
  };
}
