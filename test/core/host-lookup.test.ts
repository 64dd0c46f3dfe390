import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { expect, it } from 'vitest';
import { createLookup } from '../../src/core/host-lookup.js';
import { lookupFailure, systemLookups } from '../support/system-lookups.js';
import { VirtualClock } from '../support/virtual-clock.js';

const ADDRESS: LookupAddress = { address: '192.0.2.1', family: 4 };
const SECOND = 1_000;

function setUp() {
  const clock = new VirtualClock();
  const { query, silent, answers } = systemLookups(clock, [ADDRESS]);
  const lookup = createLookup(query, clock);
  return { clock, silent, answers, ask: (name: string) => ask(lookup, name) };
}

function ask(lookup: LookupFunction, name: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, addresses) =>
      error === null ? resolve(addresses as LookupAddress[]) : reject(error),
    );
  });
}

it('shares the lookup of a name that several connections need', async () => {
  const { clock, answers, ask } = setUp();
  expect(await clock.run(Promise.all(['a', 'a', 'a'].map(ask)))).toEqual([[ADDRESS], [ADDRESS], [ADDRESS]]);
  expect(answers.asked).toBe(1);
  await clock.run(ask('a'));
  expect(answers.asked).toBe(2);
});

it('answers other names at once while the servers of ten names are silent', async () => {
  const { clock, silent, ask } = setUp();
  const dead = Array.from({ length: 10 }, (_, n) => `dead-${n}`);
  for (const name of dead) silent.add(name);
  for (const name of ['a', 'b']) await clock.run(ask(name));
  const waits: number[] = [];
  const codes = new Set<unknown>();
  for (let second = 0; second < 900; second += 1) {
    for (const name of dead) void ask(name).catch(({ code }) => codes.add(code));
    for (const name of ['a', 'b']) {
      const asked = clock.monotonic();
      void ask(name).then(() => waits.push(clock.monotonic() - asked));
    }
    await clock.advance(SECOND);
  }
  await clock.advance(10 * SECOND);
  // Before, the two threads were busy with the ten names for five minutes; then one stays free.
  expect(waits).toHaveLength(1800);
  expect(Math.max(...waits)).toBeLessThanOrEqual(6 * SECOND);
  expect(waits.filter((ms) => ms >= SECOND).length).toBeLessThan(20);
  expect([...codes]).toEqual(['EAI_AGAIN']);
});

it('finds a name again when its servers answer after an outage', async () => {
  const { clock, silent, ask } = setUp();
  silent.add('a');
  await expect(clock.run(ask('a'))).rejects.toMatchObject({ code: 'EAI_AGAIN' });
  expect(clock.monotonic()).toBe(6 * SECOND);
  silent.delete('a');
  await clock.advance(60 * SECOND);
  await clock.run(ask('a')).catch(() => {});
  const before = clock.monotonic();
  expect(await clock.run(ask('a'))).toEqual([ADDRESS]);
  expect(clock.monotonic() - before).toBe(10);
});

it('uses the last addresses while lookups fail temporarily, but not when the name is gone', async () => {
  const { clock, answers, ask } = setUp();
  await clock.run(ask('a'));
  answers.error = lookupFailure('EAI_AGAIN');
  expect(await clock.run(ask('a'))).toEqual([ADDRESS]);
  answers.error = lookupFailure('ENOTFOUND');
  await expect(clock.run(ask('a'))).rejects.toMatchObject({ code: 'ENOTFOUND' });
  answers.error = lookupFailure('EAI_AGAIN');
  await expect(clock.run(ask('a'))).rejects.toMatchObject({ code: 'EAI_AGAIN' });
});
