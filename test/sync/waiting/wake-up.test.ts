import { expect, it } from 'vitest';
import { createWakeUp } from '../../../src/sync/waiting/wake-up.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const PAUSE_MS = 60_000;

function setUp() {
  const clock = new VirtualClock();
  const stop = new AbortController();
  const { wake, sleep } = createWakeUp(clock);
  const paused = async () => ({ isWoken: await sleep(PAUSE_MS, stop.signal), at: clock.monotonic() });
  return { clock, stop, wake, paused };
}

it('ends a pause when the task is woken', async () => {
  const { clock, wake, paused } = setUp();
  const pause = paused();
  await clock.advance(1_000);
  wake();
  expect(await pause).toEqual({ isWoken: true, at: 1_000 });
  expect(await clock.run(paused())).toEqual({ isWoken: false, at: 1_000 + PAUSE_MS });
});

it('ends the next pause, and only that one, when the task is woken between two', async () => {
  const { clock, wake, paused } = setUp();
  wake();
  wake();
  expect(await paused()).toEqual({ isWoken: true, at: 0 });
  expect(await clock.run(paused())).toEqual({ isWoken: false, at: PAUSE_MS });
});

it('ends a pause without waking the task when the signal aborts', async () => {
  const { clock, stop, paused } = setUp();
  const pause = paused();
  await clock.advance(1_000);
  stop.abort();
  expect(await pause).toEqual({ isWoken: false, at: 1_000 });
});
