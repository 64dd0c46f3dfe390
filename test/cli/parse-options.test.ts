import { expect, test } from 'vitest';
import { EXIT } from '../../src/cli/context/exit.js';
import { requireRange } from '../../src/cli/context/parse-options.js';
import { systemClock } from '../../src/core/clock.js';

const now = Date.parse('2026-11-21T12:00:00Z');
const day = (text: string) => new Date(`2026-${text}T00:00:00Z`);
const asked = (since: Date | null, until: Date | null) => () =>
  requireRange(since, until, { ...systemClock, now: () => now });

test.each([
  ['from the beginning', null, null],
  ['from the beginning to some time', null, day('01-31')],
  ['from some time on', day('01-31'), null],
  ['between two times', day('01-31'), day('02-28')],
])('a stretch may be named %s', (_, since, until) => {
  expect(asked(since, until)).not.toThrow();
});

test.each([
  ['ends before it begins', day('02-28'), day('01-31'), '--until is not after --since'],
  ['ends where it begins', day('01-31'), day('01-31'), '--until is not after --since'],
  ['is yet to come', day('12-24'), null, '--since is in the future'],
])('a stretch that %s is wrong usage', (_, since, until, message) => {
  expect(asked(since, until)).toThrow(expect.objectContaining({ message, exitCode: EXIT.usage }));
});
