import { expect, test } from 'vitest';
import { withRetries } from '../../src/cli/context/with-retries.js';
import { systemClock } from '../../src/core/clock.js';
import { noResponseError } from '../../src/service/errors/connection-errors.js';
import { httpStatusError } from '../../src/service/errors/status-errors.js';

const away = noResponseError('https://service.example', 'ECONNREFUSED');

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
    expect.stringMatching(/ returned 503: .*; retrying in 10 min$/),
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
