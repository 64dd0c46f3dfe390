import type { StoreConnection } from '../connection/store-connection.js';
import { createDeletedRuns } from '../runs/deleted-runs.js';
import { createEntryComparison, createRunCount } from './compare-entries.js';
import { createFeedReports } from './feed-report.js';
import { createFeeds } from './feeds.js';
import { createPendingResults } from './pending-results.js';
import { createQuarantinedEntries } from './quarantined-entries.js';
import { createPassRequests } from './request-pass.js';

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
