import { expect, test } from 'vitest';
import { showStatus } from '../../src/cli/terminal/show-status.js';
import { UNFILTERED } from '../../src/core/feed-filters.js';
import type { FeedReport } from '../../src/storage/operator/feed-report.js';

const report = (feed: string, storedRecently: number): FeedReport => ({
  feed,
  storedRecently,
  baseUrl: 'https://service.example/v1',
  filters: UNFILTERED,
  lagSeconds: null,
  dataCompleteAsOf: null,
  completeFrom: null,
  reconciledAsOf: null,
  initialSyncComplete: false,
  pace: null,
  lastPollAt: null,
  lastCommitAt: null,
  lastDeliveredAt: null,
  stuckSince: null,
  passes: [],
  acceptsBadUntil: null,
  writesRefused: null,
  leader: null,
  runs: 60_000,
  runsEstimated: false,
  runsWithoutData: 0,
  runsWithEarlierTestMode: 0,
  pending: {},
  pendingSince: null,
  pendingNextTryAt: null,
  givenUp: 0,
  quarantined: {},
  quarantinedLastAt: null,
  recentErrors: [],
  positions: [],
});

const recentlyStored = (...reports: readonly FeedReport[]) =>
  showStatus(reports, 'scanfeed', { now: 0, columns: null }).match(/^Recently stored: .*$/gm);

test('shows how many runs were stored recently, as a lower bound if not all recent changes were searched', () => {
  expect(recentlyStored(report('a', 9_999))).toEqual(['Recently stored: 9999 runs in the last 5 min']);
  expect(recentlyStored(report('a', 9_000), report('b', 1_000))).toEqual([
    'Recently stored: at least 9000 runs in the last 5 min',
    'Recently stored: at least 1000 runs in the last 5 min',
  ]);
});
