import { expect, it } from 'vitest';
import { createFailurePauses } from '../../../src/sync/retry/failure-pauses.js';
import { ModelFailure, StoreFailure } from '../../simulation/model-failure.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const PAUSE_MS = 60_000;

/** When a pause ends, in milliseconds, if a renewal is answered before it and after a second. */
async function pauseAfter(failure: ModelFailure): Promise<number> {
  const clock = new VirtualClock();
  const { answered, pauseAfterFailure } = createFailurePauses(clock, {});
  answered();
  const paused = pauseAfterFailure(failure, PAUSE_MS, new AbortController().signal).then(clock.monotonic);
  await clock.advance(1_000);
  answered();
  return clock.run(paused);
}

it('ends the pause of an outage when the next renewal is answered', async () => {
  expect(await pauseAfter(new StoreFailure('connection'))).toBe(1_000);
});

it.each([
  ['a statement found no free connection, although others are answered', new StoreFailure('pool_exhausted')],
  ['a statement needs an operator', new StoreFailure('schema_missing', 'hold')],
  ['a request failed', new ModelFailure('connection')],
  ['the service asked for the pause', new ModelFailure('http_429', 'retry', PAUSE_MS)],
])('does not end the pause when %s', async (_, failure) => {
  expect(await pauseAfter(failure)).toBe(PAUSE_MS);
});

it.each([
  ['ends the pause of a refusal when the key changes', new ModelFailure('http_401', 'hold'), 1_000],
  ['does not end the pause of another failure when the key changes', new ModelFailure('connection'), PAUSE_MS],
])('%s', async (_, failure, endsAt) => {
  const clock = new VirtualClock();
  let listening = 0;
  const keyChanged = async (signal: AbortSignal) => {
    listening += 1;
    await clock.sleep(1_000, signal);
    listening -= 1;
  };
  const { pauseAfterFailure } = createFailurePauses(clock, { keyChanged });
  const paused = pauseAfterFailure(failure, PAUSE_MS, new AbortController().signal).then(clock.monotonic);
  expect(await clock.run(paused)).toBe(endsAt);
  expect(listening).toBe(0);
});
