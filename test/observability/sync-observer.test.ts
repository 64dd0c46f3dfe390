import { expect, test } from 'vitest';
import { FILTER_NAMES, UNFILTERED } from '../../src/core/feed-filters.js';
import { createLiveness } from '../../src/observability/admin/liveness.js';
import { observeSync } from '../../src/observability/sync-observer.js';
import { feedStatus, testMetrics } from '../support/observed.js';

function observed() {
  const { state, metrics, failures, passes, log, clock, sample } = testMetrics();
  const liveness = createLiveness(clock.monotonic);
  const given = { feed: 'invoices', version: '1.2.3', state, metrics, logger: log.logger, failures, passes, clock };
  const sync = observeSync({ ...given, onTick: liveness.ticked });
  return { ...sync, passes, clock, sample, liveness, log };
}

const outage = Object.assign(new Error('no answer from the service'), { kind: 'connection', action: 'retry' });

test('the report lists an outage until its recovery, and each failure is counted', async () => {
  const { observer, report, sample, clock } = observed();
  for (let failure = 1; failure <= 20; failure++) {
    observer.failed('feed', outage, 1_000);
    clock.advance(1_000);
  }
  expect(await sample('scanfeed_errors_total{stage="feed",kind="connection"}')).toBe(20);
  expect(report().currentErrors).toEqual([
    {
      stage: 'feed',
      kind: 'connection',
      message: 'no answer from the service',
      held: false,
      runbook: 'ScanfeedErrorRatioHigh',
      since: '2026-01-01T00:00:00.000Z',
      failures: 20,
      nextTryAt: '2026-01-01T00:00:20.000Z',
    },
  ]);
  observer.recovered('feed');
  expect(report().currentErrors).toEqual([]);
});

test('the last poll and the last commit are not older than the data, which each commit reports', async () => {
  const { observer, report, sample } = observed();
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
  observer.status(feedStatus({ dataCompleteAsOf: at(1), lastPollAt: at(1), lastCommitAt: at(2) }));
  expect(report()).toMatchObject({ lastPollAt: at(1).toJSON(), lastCommitAt: at(2).toJSON() });
  observer.freshness({ readAt: 9_000, lagMs: 0, dataCompleteAsOf: at(10) });
  const since = at(10).toJSON();
  expect(report()).toMatchObject({ dataCompleteAsOf: since, lastPollAt: since, lastCommitAt: since });
  expect(await sample('scanfeed_last_poll_success_timestamp_seconds')).toBe(at(10).getTime() / 1_000);
});

test('the report follows the role and the freshness', () => {
  const { observer, report, clock } = observed();
  expect(report()).toMatchObject({ role: 'starting', lagSeconds: null, pendingResults: null });
  observer.status(feedStatus({ lagMs: 5_000, pendingResults: 2, leaseHolder: 'pod-2' }));
  expect(report()).toMatchObject({ role: 'standby', lagSeconds: 5, pendingResults: 2, leaseHolder: 'pod-2' });
  observer.leading(() => 30_000);
  observer.caughtUp(0);
  observer.freshness({ readAt: 0, lagMs: 0, dataCompleteAsOf: new Date(0) });
  clock.advance(1_000);
  expect(report()).toMatchObject({
    role: 'leader',
    caughtUp: true,
    lagSeconds: 1,
    dataCompleteAsOf: '1970-01-01T00:00:00.000Z',
  });
  observer.leading(null);
  expect(report().role).toBe('standby');
});

test('logs taking and losing the lease once, not with every renewal', () => {
  const { observer, log } = observed();
  for (const until of [1, 2, 3]) observer.leading(() => until);
  observer.leading(null);
  expect(log.lines.map(({ message }) => message)).toEqual(['started leading the feed', 'stopped leading the feed']);
});

test('a standby logs each leader once, but not a leader seen before the first attempt to take the lease', () => {
  const { observer, log } = observed();
  const check = (leaseHolder: string | null) => observer.status(feedStatus({ leaseHolder }));
  check('pod-1');
  expect(log.lines).toEqual([]);
  for (const holder of ['pod-1', 'pod-1', null, 'pod-2', 'pod-2']) check(holder);
  expect(log.lines.map(({ fields }) => fields.leaseHolder)).toEqual(['pod-1', 'pod-2']);
  observer.leading(() => 30_000);
  check('pod-3');
  expect(log.lines.at(-1)?.message).toBe('started leading the feed');
});

test('logs the catch-up after taking the lease and after a long delay, not at every poll', () => {
  const { observer, log, clock } = observed();
  const caughtUp = () =>
    log.lines.filter(({ message }) => message === 'caught up with the feed').map(({ fields }) => fields);
  const read = (entries: number) => observer.reading('feed', { entries, deliveredUpTo: null, pace: null });
  const reachEnd = () => {
    observer.caughtUp(clock.monotonic());
    observer.reading('feed', null);
  };
  observer.leading(() => 30_000);
  clock.advance(2_000);
  read(400);
  reachEnd();
  expect(caughtUp()).toEqual([{ entries: 400, seconds: 2 }]);

  read(1); // an occasional new run
  observer.caughtUp(null);
  reachEnd();
  expect(caughtUp()).toHaveLength(1);

  for (let second = 0; second <= 30; second += 1) {
    read(100 * second);
    clock.advance(1_000);
  }
  reachEnd();
  expect(caughtUp().slice(1)).toEqual([{ entries: 3_000, seconds: 31 }]);

  observer.leading(null);
  observer.leading(() => 60_000);
  reachEnd();
  expect(caughtUp().slice(2)).toEqual([{ entries: 0, seconds: 0 }]);
});

const COUNTS = { inserted: 0, updated: 0, filled: 0, unchanged: 0, stale: 0, quarantined: 0, conflicts: 0, stored: [] };

test('logs the activity at once, then once a minute and when the lease is lost, and nothing when idle', () => {
  const { observer, log, clock } = observed();
  observer.leading(() => 30_000);
  observer.freshness({ readAt: 0, lagMs: 1_500, dataCompleteAsOf: new Date(0) });
  const logged = () => log.lines.filter(({ message }) => message === 'activity').map(({ fields }) => fields);
  const idle = (seconds: number) => {
    for (let second = 0; second < seconds; second += 1) {
      clock.advance(1_000);
      observer.ticked(1_000);
      observer.committed(COUNTS, []);
      observer.polled('end', 0);
    }
  };
  idle(300);
  expect(logged()).toEqual([]);

  for (let page = 0; page < 3; page += 1) {
    observer.committed({ ...COUNTS, inserted: 150, updated: 20, unchanged: 29, quarantined: 1 }, []);
  }
  const one = { entries: 200, inserted: 150, updated: 20, quarantined: 1, lagSeconds: 301.5 };
  expect(logged()).toEqual([one]);
  idle(59);
  expect(logged()).toHaveLength(1);
  idle(300);
  expect(logged().slice(1)).toEqual([{ entries: 400, inserted: 300, updated: 40, quarantined: 2, lagSeconds: 361.5 }]);

  for (let page = 0; page < 2; page += 1) observer.committed({ ...COUNTS, inserted: 1 }, []);
  clock.advance(4_000);
  observer.leading(null);
  expect(logged().slice(2)).toMatchObject([{ inserted: 1 }, { inserted: 1 }]);
  expect(log.lines.at(-1)?.message).toBe('stopped leading the feed');
});

test('logs one line per page at level debug, with or without entries', () => {
  const { observer, log } = observed();
  observer.committed({ ...COUNTS, inserted: 1 }, []);
  observer.polled('entries', 1);
  observer.committed(COUNTS, []);
  observer.polled('end', 0);
  observer.polled('failed', 0);
  const lines = log.lines.filter(({ level }) => level === 'debug').map(({ message }) => message);
  expect(lines).toEqual(['committed', 'polled the feed']);
});

test('logs a repeated warning immediately, then once a minute with its sums', () => {
  const { observer, log, clock } = observed();
  observer.leading(() => 30_000);
  const logged = () => log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.entries);
  for (let page = 0; page < 90; page += 1) {
    observer.committed({ ...COUNTS, quarantined: 2 }, []);
    clock.advance(1_000);
  }
  expect(logged()).toEqual([2, 120]);
  observer.leading(null);
  expect(logged()).toEqual([2, 120, 58]);
});

test('a standby reports errors that keep it from the lease, and none of its time as leader', () => {
  const { observer, report } = observed();
  observer.leading(() => 30_000);
  for (const stage of ['feed', 'result', 'recent', 'full', 'history', 'backfill', 'lease'] as const)
    observer.failed(stage, outage, 1_000);
  const stages = () => report().currentErrors.map(({ stage }) => stage);
  observer.leading(() => 60_000);
  expect(stages()).toEqual(['feed', 'result', 'recent', 'full', 'history', 'backfill', 'lease']);
  observer.leading(null);
  expect(stages()).toEqual(['lease']);
});

test('a stage is failing from its failure to its recovery, the end of the lease, or long after its retry was due', async () => {
  const { observer, sample, clock } = observed();
  const failing = async (stage: string) => (await sample(`scanfeed_failing{stage="${stage}",kind="connection"}`)) ?? 0;
  observer.leading(() => Number.POSITIVE_INFINITY);
  for (const stage of ['feed', 'recent', 'lease'] as const) observer.failed(stage, outage, 60_000);
  expect([await failing('feed'), await failing('recent'), await failing('full')]).toEqual([1, 1, 0]);
  observer.recovered('feed');
  expect([await failing('feed'), await failing('recent')]).toEqual([0, 1]);
  observer.leading(null);
  expect([await failing('recent'), await failing('lease')]).toEqual([0, 1]);
  clock.advance(16 * 60_000 - 1);
  expect(await failing('lease')).toBe(1);
  clock.advance(1);
  expect(await failing('lease')).toBe(0);
  observer.failed('lease', outage, 60_000);
  expect(await failing('lease')).toBe(1);
});

test('counts commits, reconciliation and resets in the metrics, and logs no scan id', async () => {
  const { observer, sample, log, liveness, clock } = observed();
  observer.committed({ ...COUNTS, inserted: 1, quarantined: 1, conflicts: 1, stored: ['canary-scan'] }, [0]);
  observer.reconciled({ first: 1, later: 2 });
  observer.cursorReset({ cursor: 'canary-cursor', since: null });
  observer.polled('entries', 1);
  observer.truncated('pending', 3);
  clock.advance(59_000);
  observer.ticked(0);
  clock.advance(59_000);
  expect(liveness.check().alive).toBe(true);
  expect(await sample('scanfeed_runs_total{outcome="inserted"}')).toBe(1);
  expect(await sample('scanfeed_polls_total{outcome="entries"}')).toBe(1);
  expect(await sample('scanfeed_reconcile_found_total{revision="later"}')).toBe(2);
  expect(await sample('scanfeed_cursor_resets_total')).toBe(1);
  expect(await sample('scanfeed_truncated_results_total{outcome="pending"}')).toBe(3);
  expect(JSON.stringify(log.lines)).not.toContain('canary');
});

test('logs the sums of a repeated warning after a minute when no other page causes it', () => {
  const { observer, log, clock } = observed();
  const logged = () => log.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.entries);
  for (let page = 0; page < 4; page += 1) observer.committed({ ...COUNTS, quarantined: 2 }, []);
  clock.advance(59_000);
  observer.ticked(1_000);
  expect(logged()).toEqual([2]);
  clock.advance(1_000);
  observer.ticked(1_000);
  expect(logged()).toEqual([2, 6]);
  clock.advance(60_000);
  observer.ticked(1_000);
  expect(logged()).toEqual([2, 6]);
});

test('logs a long pass, then its progress once a minute, and reports it in metrics and in the status report', async () => {
  const { observer, report, sample, log, clock } = observed();
  const deliveredUpTo = new Date('2025-06-01T00:00:00Z');
  for (let second = 0; second <= 140; second += 1) {
    const pace = { entriesPerSecond: 812.34, secondsLeft: 500 - second };
    observer.committed({ ...COUNTS, inserted: 800 }, []);
    observer.reading('history', { entries: 800 * second, deliveredUpTo, pace });
    observer.ticked(1_000);
    clock.advance(1_000);
  }
  const logged = log.lines.filter(({ message }) => message === 'reading the history');
  expect(logged).toHaveLength(1);
  const minutes = log.lines.filter(({ message }) => message === 'activity').map(({ fields }) => fields.passes);
  expect(minutes).toMatchObject([undefined, { history: { secondsLeft: 441 } }, { history: { secondsLeft: 381 } }]);
  expect(logged[0]?.fields).toMatchObject({
    entries: 8_000,
    entriesPerSecond: 812.3,
    deliveredUpTo: '2025-06-01T00:00:00.000Z',
  });
  expect(report().passes).toMatchObject([{ pass: 'history', entriesPerSecond: 812.3, secondsLeft: 360 }]);
  expect(await sample('scanfeed_pass_entries_per_second{pass="history"}')).toBe(812.34);
  expect(await sample('scanfeed_pass_seconds_left{pass="history"}')).toBe(360);
  expect(await sample('scanfeed_pass_delivered_up_to_timestamp_seconds{pass="history"}')).toBe(1_748_736_000);
  expect(await sample('scanfeed_pass_seconds_left{pass="feed"}')).toBeUndefined();
});

test('reports no rate when it was measured more than a minute ago', async () => {
  const { observer, report, sample, clock, passes } = observed();
  expect(passes.isReadingInBulk()).toBe(false);
  observer.reading('feed', { entries: 1, deliveredUpTo: null, pace: { entriesPerSecond: 5, secondsLeft: 9 } });
  clock.advance(59_000);
  expect(passes.isReadingInBulk()).toBe(true);
  clock.advance(2_000);
  expect(passes.isReadingInBulk()).toBe(false);
  expect(report().passes).toMatchObject([{ pass: 'feed', entriesPerSecond: null, secondsLeft: null }]);
  expect(await sample('scanfeed_pass_entries_per_second{pass="feed"}')).toBe(0);
  expect(await sample('scanfeed_pass_seconds_left{pass="feed"}')).toBe(Number.POSITIVE_INFINITY);
  observer.reading('feed', null);
  expect(report().passes).toEqual([]);
  expect(await sample('scanfeed_pass_seconds_left{pass="feed"}')).toBeUndefined();
});

test.each([
  ['backfill', 'info', 'finished backfill'],
  ['history', 'info', 'finished reading the history'],
  ['full', 'info', 'finished full pass'],
  ['recent', 'debug', 'finished recent pass'], // there is one every hour
] as const)('logs what a %s pass found when it ends', (kind, level, message) => {
  const { observer, log } = observed();
  const until = new Date('2026-01-01T00:00:00Z');
  const position = { cursor: 'secret', deliveredUpTo: until };
  observer.passFinished({ id: '1', begunAt: until, kind, since: null, until, ...position, entries: 7, stored: 2 });
  const fields = { since: null, until: '2026-01-01T00:00:00.000Z', entries: 7, stored: 2 };
  expect(log.lines).toEqual([{ level, message, fields }]);
});

test('reports the progress of each kind apart when passes run at the same time', async () => {
  const { observer, report, sample, log, clock } = observed();
  const kinds = ['recent', 'full', 'history', 'backfill'] as const;
  const readAll = () => {
    for (const [index, kind] of kinds.entries()) {
      const pace = { entriesPerSecond: index + 1, secondsLeft: 10 * index };
      observer.reading(kind, { entries: 1, deliveredUpTo: null, pace });
    }
  };
  readAll();
  clock.advance(10_000);
  readAll();
  expect(log.lines.map(({ message }) => message)).toEqual([
    'running recent pass',
    'running full pass',
    'reading the history',
    'running backfill',
  ]);
  expect(report().passes.map(({ pass, secondsLeft }) => [pass, secondsLeft])).toEqual([
    ['recent', 0],
    ['full', 10],
    ['history', 20],
    ['backfill', 30],
  ]);
  for (const [index, kind] of kinds.entries())
    expect(await sample(`scanfeed_pass_entries_per_second{pass="${kind}"}`)).toBe(index + 1);
  observer.reading('full', null);
  expect(report().passes.map(({ pass }) => pass)).toEqual(['recent', 'history', 'backfill']);
  expect(await sample('scanfeed_pass_entries_per_second{pass="full"}')).toBeUndefined();
});

test.each([
  ['feed', true],
  ['history', true],
  ['backfill', true],
  ['recent', false],
  ['full', false],
] as const)('counts as reading in bulk when the %s is read: %s', (what, expected) => {
  const { observer, passes } = observed();
  observer.reading(what, { entries: 1, deliveredUpTo: null, pace: null });
  expect(passes.isReadingInBulk()).toBe(expected);
});

test('warns of runs that the cursor skipped, and counts them by revision', async () => {
  const { observer, log, sample } = observed();
  observer.reconciled({ first: 0, later: 0 });
  expect(log.lines).toEqual([]);
  observer.reconciled({ first: 1, later: 2 });
  expect(log.lines).toMatchObject([
    { level: 'warn', message: 'found runs that the cursor skipped', fields: { first: 1, later: 2 } },
  ]);
  expect(await sample('scanfeed_reconcile_found_total{revision="first"}')).toBe(1);
});

test('warns of runs that changed filters hide or leave behind', () => {
  const { observer, log } = observed();
  observer.filtersChanged(UNFILTERED, UNFILTERED);
  expect(log.lines).toEqual([]);
  observer.filtersChanged({ ...UNFILTERED, environment: 'test' }, { ...UNFILTERED, status: ['failed'] });
  expect(log.lines).toMatchObject([
    {
      level: 'warn',
      message: 'filters changed: runs no longer updated',
      fields: { runs: ['runs with status completed'] },
    },
    {
      level: 'warn',
      message: 'filters changed: earlier runs are missing',
      fields: { runs: ['runs with environment prod'], remedy: expect.stringContaining('reconcile --full') },
    },
  ]);
});

test('names the setting of each filter when only a feed without filters shows its end', () => {
  const { observer, log } = observed();
  observer.endHidden();
  const remedy = String(log.lines[0]?.fields.remedy);
  expect(remedy).toMatch(/^set the filters .*, and no others$/);
  for (const name of FILTER_NAMES) {
    if (UNFILTERED[name] === null) expect(remedy).not.toContain(name);
    else expect(remedy).toContain(`${name}=${UNFILTERED[name]}`);
  }
});
