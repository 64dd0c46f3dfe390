import { expect, it } from 'vitest';
import { watchDatabase } from '../../../src/sync/retry/database-watch.js';
import { ModelStore } from '../../simulation/model-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const outage = Object.assign(new Error('no answer from the database'), { kind: 'connection', action: 'retry' });
const PAUSE_MS = 60_000;

/** A database that failed just now, and when the pause that follows ends, in milliseconds. */
async function pauseDuring(happening: (store: ModelStore) => Promise<unknown>): Promise<number> {
  const clock = new VirtualClock();
  const model = new ModelStore(clock.monotonic);
  model.readStatus = () => Promise.reject(outage);
  const { store, pauseAfterFailure } = watchDatabase(model, clock);
  await expect(store.readStatus('default')).rejects.toBe(outage);
  const paused = pauseAfterFailure(outage, PAUSE_MS, new AbortController().signal).then(clock.monotonic);
  await clock.advance(1_000);
  await happening(store as ModelStore);
  return clock.run(paused);
}

it('ends the pause of an outage when a statement is answered', async () => {
  expect(await pauseDuring((store) => store.readPosition('default'))).toBe(1_000);
});
