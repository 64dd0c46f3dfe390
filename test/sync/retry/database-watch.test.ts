import { expect, it } from 'vitest';
import { watchDatabase } from '../../../src/sync/retry/database-watch.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const outage = new ModelFailure('connection');
const PAUSE_MS = 60_000;

/** A database that failed just now, and when the pause that follows ends, in milliseconds. */
async function pauseDuring(happening: (store: ModelStore) => Promise<unknown>, failure = outage): Promise<number> {
  const clock = new VirtualClock();
  const model = new ModelStore(clock.monotonic);
  model.readStatus = () => Promise.reject(failure);
  const { store, pauseAfterFailure } = watchDatabase(model, clock);
  await expect(store.readStatus('default')).rejects.toBe(failure);
  const paused = pauseAfterFailure(failure, PAUSE_MS, new AbortController().signal).then(clock.monotonic);
  await clock.advance(1_000);
  await happening(store as ModelStore);
  return clock.run(paused);
}

it('ends the pause of an outage when a statement is answered', async () => {
  expect(await pauseDuring((store) => store.readPosition('default'))).toBe(1_000);
});

it('does not end the pause when a statement found no free connection, although others are answered', async () => {
  const exhausted = new ModelFailure('pool_exhausted');
  expect(await pauseDuring((store) => store.readPosition('default'), exhausted)).toBe(PAUSE_MS);
});
