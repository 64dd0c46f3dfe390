import type { StoreConnection } from './connection/store-connection.js';
import { createFeedReports } from './feeds/feed-report.js';
import { createFeeds } from './feeds/feeds.js';
import { createPassRequests } from './passes/request-pass.js';
import { createEntryComparison, createRunCount } from './runs/compare-entries.js';
import { createDeletedRuns } from './runs/deleted-runs.js';
import { createPendingResults } from './runs/pending-results.js';
import { createQuarantinedEntries } from './runs/quarantined-entries.js';

export type OperatorStore = ReturnType<typeof createOperatorStore>;

/** Creates the store for operators' commands. It is safe to use while a daemon is running. */
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
    countRuns: createRunCount(connection),
  };
}
