import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createFailureLog } from '../../src/observability/log/failure-log.js';
import { noResponseError } from '../../src/service/errors/connection-errors.js';
import { httpStatusError } from '../../src/service/errors/status-errors.js';
import { databaseError, SchemaMismatch } from '../../src/storage/connection/errors.js';
import { unknownTimeZone } from '../../src/storage/reporting/time-zone.js';
import { handClock, recordingLogger } from '../support/observed.js';

function observed() {
  const clock = handClock();
  const log = recordingLogger();
  const failures = createFailureLog<'feed' | 'lease' | 'recent'>({ logger: log.logger, clock });
  /** Lines above level debug. */
  const shown = () =>
    log.lines
      .filter(({ level }) => level !== 'debug')
      .map(({ level, message, fields }) => `${level} ${message}: ${fields.stage} ${fields.kind} ${fields.failures}`);
  return { failures, clock, log, shown };
}

const failure = (kind: string, action: 'retry' | 'hold' = 'retry', type = 'ServiceError') =>
  Object.assign(new Error('no answer'), { name: type, kind, action });

test('logs an outage when it begins and when it ends, with its duration and its count', () => {
  const { failures, clock, log, shown } = observed();
  for (let number = 1; number <= 20; number += 1) {
    failures.failed('feed', failure('timeout'), 9.4);
    clock.advance(10_000);
  }
  failures.recovered('feed');
  expect(shown()).toEqual(['warn failed, retrying: feed timeout 1', 'info recovered: feed timeout 20']);
  expect(log.lines[0]?.fields).toMatchObject({ pauseMs: 9, error: expect.any(Error) });
  expect(log.lines.at(-1)?.fields.seconds).toBe(200);
  failures.recovered('feed');
  expect(shown()).toHaveLength(2);
});

test('logs a long outage again after five minutes, then in growing intervals of up to an hour', () => {
  const { failures, clock, log } = observed();
  for (let minute = 0; minute <= 6 * 60; minute += 1) {
    failures.failed('feed', failure('http_401', 'hold'), 9);
    clock.advance(60_000);
  }
  const reminders = log.lines.filter(({ message }) => message === 'still failing');
  expect(reminders.map(({ fields }) => Number(fields.seconds) / 60)).toEqual([5, 15, 35, 75, 135, 195, 255, 315]);
  expect(reminders[0]).toMatchObject({ level: 'error', fields: { since: '2026-01-01T00:00:00.000Z', failures: 6 } });
});

test('logs each way of failing once when they alternate within an outage', () => {
  const { failures, shown } = observed();
  for (const kind of ['timeout', 'http_503', 'timeout', 'http_503']) failures.failed('feed', failure(kind), 9);
  failures.failed('feed', failure('http_401', 'hold'), 9);
  expect(shown()).toEqual([
    'warn failed, retrying: feed timeout 1',
    'warn failed, retrying: feed http_503 1',
    'error holding: action required: feed http_401 1',
  ]);
  expect(failures.current()).toMatchObject([{ kind: 'http_401', failures: 1 }]);
});

test('names a cause again that has returned for a minute after another one', () => {
  const { failures, clock, shown } = observed();
  const fail = (kind: string) => {
    failures.failed('feed', failure(kind, 'hold'), 9);
    clock.advance(30_000);
  };
  for (const kind of ['http_401', 'authentication', 'http_401', 'http_401']) fail(kind);
  expect(shown()).toHaveLength(2);
  for (const kind of ['http_401', 'http_401', 'http_401']) fail(kind);
  failures.recovered('feed');
  expect(shown()).toEqual([
    'error holding: action required: feed http_401 1',
    'error holding: action required: feed authentication 1',
    'error still failing: feed http_401 4',
    'info recovered: feed http_401 6',
  ]);
});

test('counts and times the failure that is going on, from its own beginning', () => {
  const { failures, clock } = observed();
  const current = () =>
    failures.current().map(({ kind, failures: count, since }) => [kind, count, since.slice(14, 19)]);
  for (let time = 1; time <= 8; time += 1) failures.failed('feed', failure('http_401', 'hold'), 9);
  clock.advance(30_000);
  failures.failed('feed', failure('25006', 'retry', 'DatabaseError'), 9);
  expect(current()).toEqual([['25006', 1, '00:30']]);
  failures.recovered('feed');
  expect(current()).toEqual([]);
  clock.advance(10_000);
  failures.failed('feed', failure('25006', 'retry', 'DatabaseError'), 9);
  expect(current()).toEqual([['25006', 1, '00:40']]);
  clock.advance(10_000);
  failures.failed('feed', failure('timeout'), 9);
  clock.advance(10_000);
  failures.failed('feed', failure('25006', 'retry', 'DatabaseError'), 9);
  expect(current()).toEqual([['25006', 2, '00:40']]);
});

test('shows the failure first that began last, while other stages wait for their next try with an older one', () => {
  const { failures, clock } = observed();
  const fail = (stage: 'feed' | 'recent', kind: string) => {
    failures.failed(stage, failure(kind), 60_000);
    clock.advance(1_000);
  };
  const current = () => failures.current().map(({ stage, kind }) => `${stage} ${kind}`);
  for (const stage of ['feed', 'recent'] as const) fail(stage, 'http_503');
  fail('recent', 'http_401');
  expect(current()).toEqual(['recent http_401', 'feed http_503']);
  fail('feed', 'http_503'); // an older failure that continues is not newer
  expect(current()).toEqual(['recent http_401', 'feed http_503']);
  fail('feed', 'http_401');
  expect(current()).toEqual(['feed http_401', 'recent http_401']);
});

test('logs the first of several stages that fail in the same way, and another when that one has recovered', () => {
  const { failures, shown } = observed();
  const away = failure('connection', 'retry', 'DatabaseError');
  for (const stage of ['lease', 'feed', 'recent', 'lease', 'feed', 'recent'] as const) failures.failed(stage, away, 9);
  expect(shown()).toEqual(['warn failed, retrying: lease connection 1']);
  failures.failed('feed', failure('connection', 'retry', 'ConnectionError'), 9); // of the service instead of the database
  expect(shown().slice(1)).toEqual(['warn failed, retrying: feed connection 3']);
  failures.recovered('lease');
  failures.recovered('feed');
  failures.failed('recent', away, 9);
  failures.recovered('recent');
  expect(shown().slice(2)).toEqual([
    'info recovered: lease connection 2',
    'info recovered: feed connection 3',
    'warn failed, retrying: recent connection 3',
    'info recovered: recent connection 3',
  ]);
});

test('discards an outage without a line when its stage is reset', () => {
  const { failures, shown } = observed();
  failures.failed('feed', failure('timeout'), 9);
  failures.reset('feed');
  failures.recovered('feed');
  expect(shown()).toHaveLength(1);
  expect(failures.current()).toEqual([]);
});

test('asks to report a failure when it is a bug', () => {
  const { failures, log } = observed();
  failures.failed('feed', new TypeError('undefined is no function'), 9);
  expect(log.lines[0]?.fields).toMatchObject({ kind: 'internal', remedy: expect.stringContaining('bug in scanfeed') });
});

const held = (kind: string) => Object.assign(new Error(kind), { kind, action: 'hold' });

test.each([
  [httpStatusError({ operation: 'feed', status: 401 }), 'ScanfeedAuthenticationFailing'],
  [held('another_organization'), 'ScanfeedAuthenticationFailing'],
  [httpStatusError({ operation: 'feed', status: 503 }), 'ScanfeedErrorRatioHigh'],
  [noResponseError('https://service.example', 'ECONNREFUSED'), 'ScanfeedErrorRatioHigh'],
  [held('mostly_bad'), 'ScanfeedErrorRatioHigh'],
  [new TypeError('a bug'), 'ScanfeedErrorRatioHigh'],
  [databaseError({ code: 'ECONNREFUSED' }), 'ScanfeedDatabaseUnavailable'],
  [databaseError({ code: '28P01', severity: 'FATAL' }), 'ScanfeedDatabaseUnavailable'],
  [databaseError({ code: '53100', severity: 'ERROR' }), 'ScanfeedDatabaseUnavailable'],
  [new SchemaMismatch('too new'), 'ScanfeedDatabaseUnavailable'],
  [unknownTimeZone('Mars/Olympus'), 'ScanfeedDatabaseUnavailable'],
])('names the runbook that has the kind of %s: %s', async (error, runbook) => {
  const { failures } = observed();
  failures.failed('feed', error, 9);
  const [shown] = failures.current();
  expect(shown?.runbook).toBe(runbook);
  const page = await readFile(new URL(`../../docs/runbooks/${runbook}.md`, import.meta.url), 'utf8');
  expect(page).toContain(`\`${shown?.kind}\``);
});

/** A clock whose random numbers number the outages from 1. */
function numberingClock() {
  let outages = 0;
  const random = () => {
    outages += 1;
    return outages / 2 ** 31;
  };
  return { ...handClock(), random };
}

test('reports each change of an outage when it is in the log, and none of one that another stage logs', () => {
  const clock = numberingClock();
  const changes: unknown[] = [];
  const failures = createFailureLog<'feed' | 'lease'>({
    logger: recordingLogger().logger,
    clock,
    onOutage: (outage) => changes.push(outage),
  });
  failures.failed('feed', failure('timeout'), 700);
  clock.advance(1_000);
  failures.failed('feed', failure('http_503'), 900);
  failures.failed('lease', failure('http_503'), 900);
  clock.advance(1_000);
  failures.recovered('lease');
  failures.recovered('feed');
  clock.advance(60_000);
  failures.failed('feed', failure('timeout'), 100);
  failures.reset('feed');
  const meaning = { message: 'no answer', held: false, runbook: 'ScanfeedErrorRatioHigh' };
  const first = { stage: 'feed', number: 1, ...meaning, since: '2026-01-01T00:00:00.000Z', begunAt: 0 };
  const timeout = { ...first, kind: 'timeout', failures: 1, failedAt: 0, nextTryAt: 700 };
  const times = { since: '2026-01-01T00:00:01.000Z', begunAt: 1_000, failedAt: 1_000, nextTryAt: 1_900 };
  const refused = { ...first, number: 2, kind: 'http_503', failures: 1, ...times };
  const second = {
    ...first,
    number: 4,
    since: '2026-01-01T00:01:02.000Z',
    kind: 'timeout',
    failures: 1,
    begunAt: 62_000,
    failedAt: 62_000,
    nextTryAt: 62_100,
  };
  expect(changes).toEqual([
    { ...timeout, endedAt: null },
    { ...timeout, endedAt: 1_000 },
    { ...refused, endedAt: null },
    { ...refused, endedAt: 2_000 },
    { ...second, endedAt: null },
    { ...second, endedAt: 62_000 },
  ]);
});

/** A service that fails every other second. */
function flap({ failures, clock }: ReturnType<typeof observed>, times: number, kinds: readonly string[]) {
  for (let time = 0; time < times; time += 1) {
    failures.failed('feed', failure(kinds[time % kinds.length] ?? ''), 9);
    clock.advance(1_000);
    failures.recovered('feed');
    clock.advance(1_000);
  }
}

test('logs an unstable stage as one outage', () => {
  const setup = observed();
  const { failures, clock, shown } = setup;
  flap(setup, 100, ['http_503', 'http_503', 'timeout']);
  const begin = [
    'warn failed, retrying: feed http_503 1',
    'info recovered: feed http_503 1',
    'warn failed, retrying: feed timeout 1',
    'info recovered: feed timeout 1',
  ];
  expect(shown()).toEqual(begin);
  expect(failures.current()).toEqual([]);
  clock.advance(59_000);
  flap(setup, 1, ['http_503']);
  expect(shown().slice(4)).toEqual(begin.slice(0, 2));
});

test('logs an unstable stage again when a reminder is due, with its count', () => {
  const setup = observed();
  flap(setup, 151, ['http_503']);
  expect(setup.shown().slice(2)).toEqual(['warn still failing: feed http_503 1', 'info recovered: feed http_503 1']);
  const all = { failuresInAll: 151, failuresSince: '2026-01-01T00:00:00.000Z' };
  expect(setup.log.lines.find(({ message }) => message === 'still failing')?.fields).toMatchObject(all);
});

test('logs an outage again when it has lasted a minute after a short recovery', () => {
  const setup = observed();
  const { failures, clock, shown } = setup;
  flap(setup, 2, ['timeout']);
  for (let second = 0; second <= 100; second += 1) {
    failures.failed('feed', failure('timeout'), 9);
    clock.advance(1_000);
  }
  failures.recovered('feed');
  expect(shown().slice(2)).toEqual(['warn still failing: feed timeout 61', 'info recovered: feed timeout 101']);
});

test('reports an unstable stage under one number', () => {
  const clock = numberingClock();
  const changes: (readonly [number, number | null])[] = [];
  const failures = createFailureLog<'feed'>({
    logger: recordingLogger().logger,
    clock,
    onOutage: ({ number, endedAt }) => changes.push([number, endedAt]),
  });
  for (let time = 1; time <= 2; time += 1) {
    failures.failed('feed', failure('timeout'), 9);
    clock.advance(1_000);
    failures.recovered('feed');
  }
  failures.reset('feed');
  expect(changes).toEqual([
    [1, null],
    [1, 1_000],
    [1, null],
    [1, 2_000],
  ]);
});
