import { expect, test } from 'vitest';
import { createOutages } from '../../src/observability/log/outages.js';
import { handClock, recordingLogger } from '../support/observed.js';

function observed() {
  const clock = handClock();
  const log = recordingLogger();
  const outages = createOutages<'feed' | 'lease' | 'recent'>({ logger: log.logger, clock });
  /** Lines that a person sees at the usual level. */
  const told = () =>
    log.lines
      .filter(({ level }) => level !== 'debug')
      .map(({ level, message, fields }) => `${level} ${message}: ${fields.stage} ${fields.kind} ${fields.failures}`);
  return { outages, clock, log, told };
}

const trouble = (kind: string, action: 'retry' | 'hold' = 'retry', type = 'ServiceError') =>
  Object.assign(new Error('no answer'), { name: type, kind, action });

test('an outage is told as it begins and as it ends, with how long it was and how often it failed', () => {
  const { outages, clock, log, told } = observed();
  for (let failures = 1; failures <= 20; failures += 1) {
    outages.failed('feed', trouble('timeout'), 9.4);
    clock.advance(10_000);
  }
  outages.recovered('feed');
  expect(told()).toEqual(['warn failed, and will be tried again: feed timeout 1', 'info works again: feed timeout 20']);
  expect(log.lines[0]?.fields).toMatchObject({ pauseMs: 9, error: expect.any(Error) });
  expect(log.lines.at(-1)?.fields.seconds).toBe(200);
  outages.recovered('feed');
  expect(told()).toHaveLength(2);
});

test('a long outage is told again after five minutes, then after growing times up to every hour', () => {
  const { outages, clock, log } = observed();
  for (let minute = 0; minute <= 6 * 60; minute += 1) {
    outages.failed('feed', trouble('http_401', 'hold'), 9);
    clock.advance(60_000);
  }
  const reminders = log.lines.filter(({ message }) => message === 'still failing');
  expect(reminders.map(({ fields }) => Number(fields.seconds) / 60)).toEqual([5, 15, 35, 75, 135, 195, 255, 315]);
  expect(reminders[0]).toMatchObject({ level: 'error', fields: { since: '2026-01-01T00:00:00.000Z', failures: 6 } });
});

test('another way of failing within an outage is told once, however often they take turns', () => {
  const { outages, told } = observed();
  for (const kind of ['timeout', 'http_503', 'timeout', 'http_503']) outages.failed('feed', trouble(kind), 9);
  outages.failed('feed', trouble('http_401', 'hold'), 9);
  expect(told()).toEqual([
    'warn failed, and will be tried again: feed timeout 1',
    'warn failed, and will be tried again: feed http_503 2',
    'error holding: this will not pass by itself: feed http_401 5',
  ]);
  expect(outages.current()).toMatchObject([{ kind: 'http_401', failures: 5 }]);
});

test('where one thing is away, the first that needs it says so for all, and one that goes on failing says so then', () => {
  const { outages, told } = observed();
  const away = trouble('connection', 'retry', 'DatabaseError');
  for (const stage of ['lease', 'feed', 'recent', 'lease', 'feed', 'recent'] as const) outages.failed(stage, away, 9);
  expect(told()).toEqual(['warn failed, and will be tried again: lease connection 1']);
  outages.failed('feed', trouble('connection', 'retry', 'ConnectionError'), 9); // the service, and not the database
  expect(told().slice(1)).toEqual(['warn failed, and will be tried again: feed connection 3']);
  outages.recovered('lease');
  outages.recovered('feed');
  outages.failed('recent', away, 9);
  outages.recovered('recent');
  expect(told().slice(2)).toEqual([
    'info works again: lease connection 2',
    'info works again: feed connection 3',
    'warn failed, and will be tried again: recent connection 3',
    'info works again: recent connection 3',
  ]);
});

test('what the next leader has to meet is dropped without a word', () => {
  const { outages, told } = observed();
  outages.failed('feed', trouble('timeout'), 9);
  outages.dropped('feed');
  outages.recovered('feed');
  expect(told()).toHaveLength(1);
  expect(outages.current()).toEqual([]);
});

test('a bug is said to be one', () => {
  const { outages, log } = observed();
  outages.failed('feed', new TypeError('undefined is no function'), 9);
  expect(log.lines[0]?.fields).toMatchObject({ kind: 'internal', remedy: expect.stringContaining('bug in scanfeed') });
});

test('each change of an outage that is in the log is passed on, and none of what is told by another', () => {
  const clock = handClock();
  const changes: unknown[] = [];
  const outages = createOutages<'feed' | 'lease'>({
    logger: recordingLogger().logger,
    clock,
    onChange: (outage) => changes.push(outage),
  });
  outages.failed('feed', trouble('timeout'), 700);
  clock.advance(1_000);
  outages.failed('feed', trouble('http_503'), 900);
  outages.failed('lease', trouble('http_503'), 900);
  clock.advance(1_000);
  outages.recovered('lease');
  outages.recovered('feed');
  clock.advance(60_000);
  outages.failed('feed', trouble('timeout'), 100);
  outages.dropped('feed');
  const first = { stage: 'feed', number: 1, message: 'no answer', begunAt: 0 };
  const second = {
    ...first,
    number: 3,
    kind: 'timeout',
    failures: 1,
    begunAt: 62_000,
    failedAt: 62_000,
    nextTryAt: 62_100,
  };
  expect(changes).toEqual([
    { ...first, kind: 'timeout', failures: 1, failedAt: 0, nextTryAt: 700, endedAt: null },
    { ...first, kind: 'http_503', failures: 2, failedAt: 1_000, nextTryAt: 1_900, endedAt: null },
    { ...first, kind: 'http_503', failures: 2, failedAt: 1_000, nextTryAt: 1_900, endedAt: 2_000 },
    { ...second, endedAt: null },
    { ...second, endedAt: 62_000 },
  ]);
});

/** A service that fails every other second. */
function flap({ outages, clock }: ReturnType<typeof observed>, times: number, kinds: readonly string[]) {
  for (let time = 0; time < times; time += 1) {
    outages.failed('feed', trouble(kinds[time % kinds.length] ?? ''), 9);
    clock.advance(1_000);
    outages.recovered('feed');
    clock.advance(1_000);
  }
}

test('what fails now and then is one outage, over once it has worked for a minute', () => {
  const bench = observed();
  const { outages, clock, log, told } = bench;
  flap(bench, 100, ['http_503', 'http_503', 'timeout']);
  const begin = [
    'warn failed, and will be tried again: feed http_503 1',
    'info works again: feed http_503 1',
    'warn failed, and will be tried again: feed timeout 3',
    'info works again: feed timeout 3',
  ];
  expect(told()).toEqual(begin);
  expect(outages.current()).toEqual([]);
  clock.advance(58_000);
  outages.passed();
  expect(told()).toEqual(begin);
  clock.advance(1_000);
  outages.passed();
  outages.passed();
  expect(told().slice(4)).toEqual(['info works again: feed http_503 100']);
  expect(log.lines.at(-1)?.fields.seconds).toBe(199);
  flap(bench, 1, ['http_503']);
  expect(told().slice(5)).toEqual(begin.slice(0, 2));
});

test('what fails again soon after its end is told once it has failed on for a minute, and its end at once', () => {
  const bench = observed();
  const { outages, clock, told } = bench;
  flap(bench, 2, ['timeout']);
  for (let second = 0; second <= 100; second += 1) {
    outages.failed('feed', trouble('timeout'), 9);
    clock.advance(1_000);
  }
  outages.recovered('feed');
  expect(told().slice(2)).toEqual(['warn still failing: feed timeout 63', 'info works again: feed timeout 103']);
});

test('what fails now and then is noted under one number, and its end is told as it is dropped', () => {
  const clock = handClock();
  const log = recordingLogger();
  const changes: (readonly [number, number | null])[] = [];
  const outages = createOutages<'feed'>({
    logger: log.logger,
    clock,
    onChange: ({ number, endedAt }) => changes.push([number, endedAt]),
  });
  for (let time = 1; time <= 2; time += 1) {
    outages.failed('feed', trouble('timeout'), 9);
    clock.advance(1_000);
    outages.recovered('feed');
  }
  expect(changes).toEqual([
    [1, null],
    [1, 1_000],
    [1, null],
    [1, 2_000],
  ]);
  outages.dropped('feed');
  expect(changes).toHaveLength(4);
  expect(log.lines.at(-1)).toMatchObject({ level: 'info', message: 'works again', fields: { failures: 2 } });
});
