import { expect, it } from 'vitest';
import { batchCalls } from '../../../src/storage/connection/batch-calls.js';
import { VirtualClock } from '../../support/virtual-clock.js';

function setUp(waitMs: () => number) {
  const clock = new VirtualClock();
  const batches: (readonly number[])[] = [];
  const double = batchCalls(
    async (calls: readonly number[]) => {
      batches.push(calls);
      if (calls.includes(13)) throw new Error('unlucky');
      return calls.map((call) => 2 * call);
    },
    { waitMs, sleep: clock.sleep },
  );
  return { clock, batches, double };
}

it('answers the calls of one wait together, each with its own answer, and later ones with the next', async () => {
  const { clock, batches, double } = setUp(() => 100);
  const late = clock.pause(150).then(() => double(4));
  const answers = clock.run(Promise.all([double(1), double(2), clock.pause(99).then(() => double(3)), late]));
  expect(await answers).toEqual([2, 4, 6, 8]);
  expect(batches).toEqual([[1, 2, 3], [4]]);
});

it('answers each call at once when there is no wait', async () => {
  const { batches, double } = setUp(() => 0);
  expect(await Promise.all([double(1), double(2)])).toEqual([2, 4]);
  expect(batches).toEqual([[1], [2]]);
});

it('fails all calls that were to be answered together, and not those after them', async () => {
  const { clock, double } = setUp(() => 100);
  const failing = Promise.allSettled([double(1), double(13)]);
  expect((await clock.run(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await clock.run(double(5))).toBe(10);
});
