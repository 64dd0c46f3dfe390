import { expect, test } from 'vitest';
import type { CommandProcess } from '../../src/cli/context/command-process.js';
import { withRetries } from '../../src/cli/context/with-retries.js';
import { progressLine } from '../../src/cli/terminal/progress-line.js';
import { systemClock } from '../../src/core/clock.js';
import { ConnectionError } from '../../src/service/errors/request-errors.js';
import { httpStatusError } from '../../src/service/errors/status-errors.js';

const away = new ConnectionError('https://service.example', 'ECONNREFUSED');

test('withRetries reports the reason and length of each pause', async () => {
  const answers = [httpStatusError({ operation: 'run', status: 503, retryAfterMs: 600_000 }), away];
  const said: string[] = [];
  const work = async () => {
    const failure = answers.shift();
    if (failure !== undefined) throw failure;
    return 'the run';
  };
  const clock = { ...systemClock, random: () => 0.5, sleep: async () => {} };
  expect(await withRetries(work, { clock, onPause: (line) => said.push(line) })).toBe('the run');
  expect(said).toEqual([
    expect.stringMatching(/ answered 503: .*; retrying in 10 min$/),
    expect.stringMatching(/^no response from https:\/\/service\.example .*; retrying in 0\.5 s$/),
  ]);
});

test('withRetries neither waits nor retries when the command is interrupted', async () => {
  const stop = new AbortController();
  const sleeps: AbortSignal[] = [];
  const clock = {
    ...systemClock,
    sleep: async (_: number, signal: AbortSignal) => {
      sleeps.push(signal);
      stop.abort();
    },
  };
  let tries = 0;
  const work = async () => {
    tries += 1;
    throw away;
  };
  await expect(withRetries(work, { clock, signal: stop.signal, onPause: () => {} })).rejects.toBe(away);
  expect({ tries, sleeps }).toEqual({ tries: 1, sleeps: [stop.signal] });
});

test.each([
  ['on a terminal', true, ['\r3 read\x1b[K', '\r\x1b[K', 'waiting for an hour\n']],
  ['in a pipe', false, ['3 read\n', 'waiting for an hour\n']],
])('what has to be known is said at once, right after a line of progress, %s', (_, redraws, said) => {
  const noted: string[] = [];
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const progress = progressLine({ redraws, note: (text: string) => void noted.push(text), clock } as CommandProcess);
  now = 10_000;
  progress.show(() => '3 read');
  progress.say('waiting for an hour');
  expect(noted).toEqual(said);
});

test('a redrawn line stays within one row of the terminal', () => {
  const noted: string[] = [];
  let now = 0;
  const terminal: Partial<CommandProcess> = {
    ...{ redraws: true, noteColumns: 20, note: (text) => noted.push(text) },
    clock: { ...systemClock, monotonic: () => now },
  };
  const progress = progressLine(terminal as CommandProcess);
  now = 1_000;
  progress.show(() => 'x'.repeat(30));
  progress.clear();
  expect(noted).toEqual([`\r${'x'.repeat(19)}\x1b[K`, '\r\x1b[K']);
});
