import { expect, test } from 'vitest';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { eventually } from '../../support/program/daemon.js';
import { useProgram } from '../../support/program/setup.js';

const setup = useProgram();

/** Names that dashboards and alerts use. */
const METRICS = [
  'scanfeed_lag_seconds',
  'scanfeed_data_complete_as_of_timestamp_seconds',
  'scanfeed_last_poll_success_timestamp_seconds',
  'scanfeed_last_commit_timestamp_seconds',
  'scanfeed_caught_up',
  'scanfeed_leader',
  ...['entries', 'skipped', 'end', 'stuck', 'failed'].map((outcome) => `scanfeed_polls_total{outcome="${outcome}"}`),
  ...['inserted', 'updated', 'unchanged', 'stale', 'quarantined'].map(
    (outcome) => `scanfeed_runs_total{outcome="${outcome}"}`,
  ),
  ...['resolved', 'pending', 'skipped'].map((outcome) => `scanfeed_truncated_results_total{outcome="${outcome}"}`),
  'scanfeed_pending_results',
  'scanfeed_quarantined_entries',
  'scanfeed_errors_total{stage="feed"}',
  'scanfeed_http_request_duration_seconds_count{operation="feed",status="200"}',
  'scanfeed_transaction_duration_seconds_count',
  'scanfeed_delivery_delay_seconds_count',
  'scanfeed_reconcile_found_total{revision="first"}',
  'scanfeed_reconcile_found_total{revision="later"}',
  'scanfeed_initial_sync_complete',
  'scanfeed_cursor_resets_total',
  'scanfeed_revision_conflicts_total',
  'scanfeed_database_pool{state="active"}',
  'scanfeed_database_pool{state="idle"}',
  'scanfeed_database_pool{state="waiting"}',
  'scanfeed_build_info{version="0.1.0"}',
  'process_resident_memory_bytes',
  'nodejs_heap_size_used_bytes',
];

test('copies a history, follows new runs, and reports both correctly', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  const [first, second] = service.deliver(330) as [string, string];
  service.deliver(3, { truncated: 'data' });
  service.deliver(2, { status: 'failed', error: setup.secrets.document });
  const startedAt = Date.now();
  // On a busy machine a lease of one second may expire in between.
  const daemon = setup.daemon({ ...setup.environment(service, database), SCANFEED_LEASE_TTL: '30s' });
  await daemon.catchesUp();

  expect(await daemon.metric('scanfeed_delivery_delay_seconds_count')).toBe(0);
  service.deliver(7);
  service.correct(first);
  service.appendRuns([{ scanId: second, data: { text: setup.secrets.document } }]);
  await eventually(() => daemon.metric('scanfeed_runs_total{outcome="unchanged"}')).toBe(1);
  expect(await database.query('SELECT count(*)::int AS runs FROM scanfeed.runs')).toEqual([{ runs: 342 }]);

  const before = service.requests.count('feed');
  const metrics = await daemon.metrics();
  const after = service.requests.count('feed');
  expect([...metrics.keys()]).toEqual(expect.arrayContaining(METRICS));
  // The figures of docs/metrics.md.
  const { body } = await daemon.get('/metrics');
  const series = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  expect(series.length).toBeGreaterThan(100);
  expect(series.length).toBeLessThanOrEqual(400);
  expect(body.length).toBeLessThanOrEqual(50 * 1024);
  expect(Object.fromEntries(metrics)).toMatchObject({
    'scanfeed_runs_total{outcome="inserted"}': 342,
    'scanfeed_runs_total{outcome="updated"}': 1,
    'scanfeed_runs_total{outcome="unchanged"}': 1,
    'scanfeed_runs_total{outcome="stale"}': 0,
    'scanfeed_runs_total{outcome="quarantined"}': 0,
    'scanfeed_truncated_results_total{outcome="resolved"}': 3,
    'scanfeed_http_request_duration_seconds_count{operation="run",status="200"}': 3,
    'scanfeed_polls_total{outcome="failed"}': 0,
    'scanfeed_polls_total{outcome="stuck"}': 0,
    scanfeed_delivery_delay_seconds_count: 8,
    scanfeed_leader: 1,
    scanfeed_caught_up: 1,
    scanfeed_initial_sync_complete: 1,
    scanfeed_pending_results: 0,
    scanfeed_quarantined_entries: 0,
  });
  const value = (series: string) => metrics.get(series) as number;
  const sum = (prefix: string) =>
    [...metrics].reduce((total, [series, each]) => (series.startsWith(prefix) ? total + each : total), 0);
  expect(sum('scanfeed_errors_total')).toBe(0);
  // A poll that is still running is not counted yet.
  const polls = value('scanfeed_http_request_duration_seconds_count{operation="feed",status="200"}');
  expect(polls).toBeGreaterThanOrEqual(before - 1);
  expect(polls).toBeLessThanOrEqual(after);
  expect(value('scanfeed_lag_seconds')).toBeLessThan(30);
  for (const time of ['data_complete_as_of', 'last_poll_success', 'last_commit']) {
    const at = value(`scanfeed_${time}_timestamp_seconds`) * 1000;
    expect(at).toBeGreaterThanOrEqual(startedAt);
    expect(at).toBeLessThanOrEqual(Date.now());
  }
});

test('serves the same state as JSON, as health and as a page', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const daemon = setup.daemon(setup.environment(service, database));
  await daemon.catchesUp();

  expect(await daemon.get('/livez')).toEqual({ status: 200, body: 'alive\n' });
  expect(await daemon.get('/readyz')).toEqual({ status: 200, body: 'ready\n' });
  expect(await daemon.status()).toMatchObject({
    feed: 'default',
    version: '0.1.0',
    role: 'leader',
    runsWritten: 5,
    pendingResults: 0,
    quarantinedEntries: 0,
    leaseHolder: expect.stringContaining(`/${daemon.pid}/`),
  });
  expect((await daemon.get('/')).body).toContain('Caught up');
  expect(daemon.logged().map(({ message }) => message)).toEqual([
    'admin server is listening',
    ...(await readMigrations()).map(() => 'applied a migration'),
    'started leading the feed',
    'activity',
    'caught up with the feed',
  ]);
  expect(daemon.stderr).toBe('');
});

test('sends all settings explicitly to the service', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(10, { deliveredAt: '2026-01-02T00:00:00Z', documentType: 'rechnung', environment: 'test' });
  const daemon = setup.daemon({
    ...setup.environment(service, database),
    SCANFEED_FEED: 'invoices',
    SCANFEED_ENVIRONMENT: 'all',
    SCANFEED_STATUS: 'completed',
    SCANFEED_DOCUMENT_TYPE: 'rechnung',
    SCANFEED_MARKDOWN: 'yes',
    SCANFEED_PAGE_LIMIT: '7',
    SCANFEED_START: '2026-01-01T00:00:00+01:00',
    SCANFEED_DATABASE_SCHEMA: 'other',
  });
  await daemon.reaches({ feed: 'invoices', caughtUp: true, runsWritten: 10 });
  expect(service.asked[0]?.query).toEqual({
    environment: 'all',
    status: 'completed',
    documentType: 'rechnung',
    markdown: 'true',
    limit: '7',
    since: '2025-12-31T23:00:00.000Z',
  });
  expect(service.asked[0]?.headers['user-agent']).toBe('scanfeed/0.1.0');
  expect(await database.query('SELECT count(markdown)::int AS runs FROM other.runs')).toEqual([{ runs: 10 }]);
});

test('counts a run that a recent pass finds behind the cursor', async () => {
  const service = await setup.startService();
  const database = await setup.createDatabase();
  service.deliver(5);
  const daemon = setup.daemon({
    ...setup.environment(service, database),
    SCANFEED_RECONCILE_INTERVAL: '1s',
  });
  await daemon.catchesUp();
  const [late] = service.deliver(1, { deliveredAt: Date.now() - 60_000 });
  await eventually(() => daemon.metric('scanfeed_reconcile_found_total{revision="first"}')).toBe(1);
  await daemon.logs('found runs that the cursor skipped', { first: 1, later: 0 });
  expect(await database.query('SELECT scan_id FROM scanfeed.runs WHERE scan_id = $1', [late])).toHaveLength(1);
});
