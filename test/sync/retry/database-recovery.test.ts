import { expect, it } from 'vitest';
import { createDatabaseRecovery } from '../../../src/sync/retry/database-recovery.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const outage = new ModelFailure('connection');
const PAUSE_MS = 60_000;

/** When a pause ends, in milliseconds, if a renewal that failed is answered after a second. */
async function pauseAfter(failure: ModelFailure, failedRenewal: ModelFailure): Promise<number> {
  const clock = new VirtualClock();
  const { failed, answered, pauseAfterFailure } = createDatabaseRecovery(clock);
  failed(failedRenewal);
  const paused = pauseAfterFailure(failure, PAUSE_MS, new AbortController().signal).then(clock.monotonic);
  await clock.advance(1_000);
  answered();
  return clock.run(paused);
}

it('ends the pause of an outage when a renewal is answered', async () => {
  expect(await pauseAfter(outage, outage)).toBe(1_000);
});

it.each([
  ['found no free connection, although others are answered', new ModelFailure('pool_exhausted')],
  ['needed an operator', new ModelFailure('schema_missing', 'hold')],
])('does not end the pause when a renewal %s', async (_, failedRenewal) => {
  expect(await pauseAfter(outage, failedRenewal)).toBe(PAUSE_MS);
});

it('does not shorten a pause that the service asked for', async () => {
  const limited = Object.assign(new ModelFailure('http_429'), { retryAfterMs: PAUSE_MS });
  expect(await pauseAfter(limited, outage)).toBe(PAUSE_MS);
});
