import { expect, it } from 'vitest';
import { createDatabaseRecovery } from '../../../src/sync/retry/database-recovery.js';
import { ModelFailure, StoreFailure } from '../../simulation/model-failure.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const PAUSE_MS = 60_000;

/** When a pause ends, in milliseconds, if a renewal is answered before it and after a second. */
async function pauseAfter(failure: ModelFailure): Promise<number> {
  const clock = new VirtualClock();
  const { answered, pauseAfterFailure } = createDatabaseRecovery(clock);
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
