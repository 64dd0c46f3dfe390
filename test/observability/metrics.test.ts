import perfHooks from 'node:perf_hooks';
import { describe, expect, test, vi } from 'vitest';
import { createFeedState } from '../../src/observability/feed-state.js';
import { createFailureLog } from '../../src/observability/log/failure-log.js';
import { createMetrics, type MetricsOptions } from '../../src/observability/metrics/metrics.js';
import { createPassTracker } from '../../src/observability/pass-tracker.js';
import type { Stage } from '../../src/sync/ports/index.js';
import { feedStatus, handClock, recordingLogger, samplesOf, testMetrics } from '../support/observed.js';

const COUNTS = { inserted: 3, updated: 2, filled: 1, unchanged: 1, stale: 4, quarantined: 5, conflicts: 6, stored: [] };

describe('metrics', () => {
  test('have the label feed, including those of Node', async () => {
    const { text, contentType } = await testMetrics().metrics.exposition();
    const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    expect(series.length).toBeGreaterThan(50);
    expect(series.filter((line) => !/[{,]feed="invoices"[,}]/.test(line))).toEqual([]);
    expect(text).toContain('process_cpu_seconds_total');
    expect(contentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  test('start at 0, except the lag, which is unknown', async () => {
    const samples = samplesOf((await testMetrics().metrics.exposition()).text);
    const others = [...samples].filter(([series, value]) => series.startsWith('scanfeed_') && value !== 0);
    expect(others).toEqual([
      ['scanfeed_lag_seconds', Number.POSITIVE_INFINITY],
      ['scanfeed_feeds{state="standby"}', 1],
      ['scanfeed_build_info{version="1.2.3"}', 1],
    ]);
    expect(samples.get('scanfeed_runs_total{outcome="quarantined"}')).toBe(0);
    expect(samples.get('scanfeed_http_request_duration_seconds_count{operation="run",status="200"}')).toBe(0);
    expect([...samples.keys()].filter((series) => /kind="|status="(?!200)/.test(series))).toEqual([]);
  });

  test('are independent of those of another feed in the same process', async () => {
    const [one, other] = [testMetrics(), testMetrics({ labels: { feed: 'letters' } })];
    one.metrics.polled('end');
    expect(await one.sample('scanfeed_polls_total{outcome="end"}')).toBe(1);
    expect(await other.sample('scanfeed_polls_total{outcome="end"}')).toBe(0);
  });

  test('count what a commit changed', async () => {
    const { metrics, sample } = testMetrics();
    metrics.committed(COUNTS);
    metrics.committed(COUNTS);
    expect(await sample('scanfeed_runs_total{outcome="inserted"}')).toBe(6);
    expect(await sample('scanfeed_runs_total{outcome="quarantined"}')).toBe(10);
    expect(await sample('scanfeed_revision_conflicts_total')).toBe(12);
  });

  test('count unknown label values as other', async () => {
    const { metrics, sample } = testMetrics();
    metrics.failed('feed', 'http_599');
    metrics.failed('feed', 'Rechnung 4711');
    metrics.requested('feed', 599, 10);
    metrics.requested('feed', 200, 10);
    expect(await sample('scanfeed_errors_total{stage="feed",kind="http_other"}')).toBe(1);
    expect(await sample('scanfeed_errors_total{stage="feed",kind="other"}')).toBe(1);
    expect(await sample('scanfeed_http_request_duration_seconds_count{operation="feed",status="other"}')).toBe(1);
    const lines = (await metrics.exposition()).text.split('\n');
    expect(lines.filter((line) => /^scanfeed_.*(599|4711)/.test(line))).toEqual([]);
  });

  test('observe durations in seconds', async () => {
    const { metrics, sample } = testMetrics();
    metrics.requested('feed', 200, 1_500);
    metrics.transacted(20);
    expect(await sample('scanfeed_http_request_duration_seconds_sum{operation="feed",status="200"}')).toBe(1.5);
    expect(await sample('scanfeed_transaction_duration_seconds_sum')).toBe(0.02);
    expect(await sample('scanfeed_transaction_duration_seconds_bucket{le="0.01"}')).toBe(0);
    expect(await sample('scanfeed_transaction_duration_seconds_bucket{le="0.025"}')).toBe(1);
  });

  test('read the pool at each scrape', async () => {
    let active = 1;
    const { sample } = testMetrics({ databasePool: () => ({ active, idle: 2, waiting: 3 }) });
    expect(await sample('scanfeed_database_pool{state="active"}')).toBe(1);
    active = 4;
    expect(await sample('scanfeed_database_pool{state="active"}')).toBe(4);
    expect(await sample('scanfeed_database_pool{state="waiting"}')).toBe(3);
  });
});

describe('the lag', () => {
  test('grows with the time when nothing is read', async () => {
    const { state, clock, sample } = testMetrics();
    clock.advance(1_000);
    state.setStatus(feedStatus({ readAt: 1_000, lagMs: 2_000 }));
    expect(await sample('scanfeed_lag_seconds')).toBe(2);
    clock.advance(60_000);
    expect(await sample('scanfeed_lag_seconds')).toBe(62);
  });

  test('is infinite while unknown, and again when it becomes unknown', async () => {
    const { state, clock, sample } = testMetrics();
    state.setStatus(feedStatus({ lagMs: null, dataCompleteAsOf: null }));
    expect(await sample('scanfeed_lag_seconds')).toBe(Number.POSITIVE_INFINITY);
    state.setFreshness({ readAt: clock.monotonic(), lagMs: 10, dataCompleteAsOf: new Date(5_000) });
    expect(await sample('scanfeed_lag_seconds')).toBe(0.01);
    expect(await sample('scanfeed_data_complete_as_of_timestamp_seconds')).toBe(5);
    state.setFreshness({ readAt: clock.monotonic(), lagMs: null, dataCompleteAsOf: null });
    expect(await sample('scanfeed_lag_seconds')).toBe(Number.POSITIVE_INFINITY);
  });

  test('follows the latest reading when reports arrive out of order', async () => {
    const { state, clock, sample } = testMetrics();
    clock.advance(2_000);
    state.setFreshness({ readAt: 2_000, lagMs: 0, dataCompleteAsOf: new Date(9_000) });
    state.setStatus(feedStatus({ readAt: 1_000, lagMs: 50_000, pendingResults: 3 }));
    expect(await sample('scanfeed_lag_seconds')).toBe(0);
    expect(await sample('scanfeed_pending_results')).toBe(3);
  });

  test('is never negative', async () => {
    const { state, sample } = testMetrics();
    state.setFreshness({ readAt: 0, lagMs: -500, dataCompleteAsOf: new Date() });
    expect(await sample('scanfeed_lag_seconds')).toBe(0);
  });
});

describe('the gauges of the database', () => {
  test('are the same on a standby', async () => {
    const { state, sample } = testMetrics();
    state.setStatus(feedStatus({ pendingResults: 4, quarantinedEntries: 5, runsWithoutData: 6 }));
    expect(await sample('scanfeed_leader')).toBe(0);
    expect(await sample('scanfeed_lag_seconds')).toBe(0);
    expect(await sample('scanfeed_pending_results')).toBe(4);
    expect(await sample('scanfeed_quarantined_entries')).toBe(5);
    expect(await sample('scanfeed_runs_without_data')).toBe(6);
    expect(await sample('scanfeed_initial_sync_complete')).toBe(1);
    expect(await sample('scanfeed_last_poll_success_timestamp_seconds')).toBe(Date.UTC(2026, 0, 1, 0, 0, 1) / 1000);
    expect(await sample('scanfeed_last_commit_timestamp_seconds')).toBe(Date.UTC(2026, 0, 1, 0, 0, 2) / 1000);
    expect(await sample('scanfeed_last_delivery_timestamp_seconds')).toBe(Date.UTC(2026, 0, 1, 0, 0, 3) / 1000);
  });
});

test.each(['invoices', undefined])(
  'the time until which unusable entries are accepted exists only while that is in force, of the feed %s',
  async (feed) => {
    const { state, metrics, sample } = testMetrics({ labels: feed === undefined ? {} : { feed } });
    const name = 'scanfeed_unusable_accepted_until_timestamp_seconds';
    expect(await sample(name)).toBeUndefined();
    state.setStatus(feedStatus({ acceptsBadUntil: new Date(5_000) }));
    expect((await metrics.exposition()).text).toContain(`\n${name}{feed="${feed ?? 'first'}"} 5\n`);
    state.setStatus(feedStatus());
    expect(await sample(name)).toBeUndefined();
  },
);

describe('leading and being caught up', () => {
  test('end when the lease expires without a report', async () => {
    const { state, clock, sample } = testMetrics();
    state.setLeader(() => 30_000);
    state.setCaughtUp(0);
    expect([await sample('scanfeed_leader'), await sample('scanfeed_caught_up')]).toEqual([1, 1]);
    clock.advance(30_000);
    expect([await sample('scanfeed_leader'), await sample('scanfeed_caught_up')]).toEqual([0, 0]);
  });

  test('last three poll intervals and the request timeout after the end was seen', async () => {
    const { state, clock, sample } = testMetrics();
    state.setLeader(() => Number.POSITIVE_INFINITY);
    state.setCaughtUp(0);
    clock.advance(44_999);
    expect(await sample('scanfeed_caught_up')).toBe(1);
    clock.advance(1);
    expect(await sample('scanfeed_caught_up')).toBe(0);
  });

  test('differ when a leader is behind the end, and on a standby', async () => {
    const { state, sample } = testMetrics();
    state.setCaughtUp(0);
    expect(await sample('scanfeed_caught_up')).toBe(0);
    state.setLeader(() => 10_000);
    state.setCaughtUp(null);
    expect([await sample('scanfeed_leader'), await sample('scanfeed_caught_up')]).toEqual([1, 0]);
  });

  test('decide whether delivery delays are observed', async () => {
    const { state, metrics, clock, sample } = testMetrics();
    clock.advance(10_000);
    metrics.delivered([9_000]);
    expect(await sample('scanfeed_delivery_delay_seconds_count')).toBe(0);
    state.setLeader(() => 30_000);
    state.setCaughtUp(10_000);
    metrics.delivered([9_000, 8_000, 11_000]);
    expect(await sample('scanfeed_delivery_delay_seconds_count')).toBe(3);
    expect(await sample('scanfeed_delivery_delay_seconds_sum')).toBe(3);
  });
});

test('two metrics objects of one feed can both collect the metrics of Node', async () => {
  const options = { labels: {}, version: '1', monotonic: () => 0 };
  const both = [createMetrics(options), createMetrics(options)];
  const texts = await Promise.all(both.map((metrics) => metrics.exposition()));
  expect(texts.map(({ text }) => text.includes('nodejs_version_info'))).toEqual([true, true]);
});

test('the utilization of the event loop is measured without waking an idle process', async () => {
  const monitor = vi.spyOn(perfHooks, 'monitorEventLoopDelay');
  try {
    const { sample } = testMetrics();
    for (const [options] of monitor.mock.calls) expect(options?.resolution).toBeGreaterThan(86_400_000);
    const busy = () => sample('nodejs_eventloop_active_seconds_total');
    const before = await busy();
    expect(before).toBeGreaterThan(0);
    expect(await busy()).toBeGreaterThan(before ?? Number.NaN);
    expect(await sample('nodejs_eventloop_lag_p99_seconds')).toBeUndefined();
  } finally {
    monitor.mockRestore();
  }
});

describe('the metrics of the feeds of a file', () => {
  /** A process that follows this many feeds, `feed-0` and so on. */
  function setUp(feeds: number, options: Partial<MetricsOptions> = {}) {
    const clock = handClock();
    const { monotonic } = clock;
    const metrics = createMetrics({ labels: {}, version: '1.2.3', monotonic, ...options });
    const added = Array.from({ length: feeds }, (_, index) => {
      const state = createFeedState({ monotonic, pollIntervalMs: 5_000, requestTimeoutMs: 30_000 });
      const failures = createFailureLog<Stage>({ logger: recordingLogger().logger, clock });
      const passes = createPassTracker(recordingLogger().logger, clock);
      return { state, failures, passes, metrics: metrics.addFeed(`feed-${index}`, { state, failures, passes }) };
    });
    const lines = async () =>
      (await metrics.exposition()).text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return { metrics, added, lines, clock };
  }

  test('have a gauge for each feed, and count the events of all feeds together', async () => {
    const { added, lines } = setUp(2, { invalidFeeds: () => 3 });
    const [one, other] = added;
    one?.state.setLeader(() => 10_000);
    one?.metrics.polled('end');
    other?.metrics.polled('end');
    const found = await lines();
    expect(found.filter((line) => line.startsWith('scanfeed_leader'))).toEqual([
      'scanfeed_leader{feed="feed-0"} 1',
      'scanfeed_leader{feed="feed-1"} 0',
    ]);
    expect(found).toContain('scanfeed_polls_total{outcome="end"} 2');
    expect(found.filter((line) => line.startsWith('scanfeed_feeds'))).toEqual([
      'scanfeed_feeds{state="leading"} 1',
      'scanfeed_feeds{state="standby"} 1',
      'scanfeed_feeds{state="invalid"} 3',
    ]);
    expect(found.filter((line) => line.includes('feed=""'))).toEqual([]);
  });

  test('have no series of a removed feed, and have them again when it is added again', async () => {
    const { metrics, added, lines } = setUp(2);
    added[0]?.metrics.remove();
    expect((await lines()).filter((line) => line.includes('feed-0'))).toEqual([]);
    const { state, failures, passes } = testMetrics();
    metrics.addFeed('feed-0', { state, failures, passes });
    expect((await lines()).filter((line) => line.includes('feed-0')).length).toBeGreaterThan(5);
  });

  test('are at most 15,000 lines for a thousand feeds', async () => {
    const { metrics } = setUp(1_000);
    expect((await metrics.exposition()).text.split('\n').length).toBeLessThanOrEqual(15_000);
  });
});
