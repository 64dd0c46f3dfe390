import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { type Emulator, startEmulator } from '../../src/emulator/index.js';
import { ServiceClient } from '../../src/service/client.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { ModelStore } from '../simulation/model-store.js';
import { engineContext, silentObserver } from '../support/engine.js';

const HOUR_MS = 3_600_000;

const started: Emulator[] = [];
afterEach(async () => {
  for (const emulator of started.splice(0)) await emulator.close();
});

/** @param offset of the service's clock, milliseconds */
async function serve(cursors: 'stable' | 'moving', offset: { ms: number }): Promise<Emulator> {
  const emulator = await startEmulator({ now: () => Date.now() + offset.ms, switches: { cursors } });
  started.push(emulator);
  return emulator;
}

/** Follows the feed, through HTTP, until it is said to be caught up. */
async function catchUp(emulator: Emulator, store: ModelStore): Promise<void> {
  const stop = new AbortController();
  const service = new ServiceClient({ baseUrl: emulator.url, apiKey: emulator.apiKey });
  const observer = silentObserver({
    caughtUp: (at) => {
      if (at !== null) stop.abort();
    },
  });
  const context = engineContext({ service, store, clock: systemClock, observer, pollIntervalMs: 10 });
  await syncFeed(context, stop.signal);
  await service.close();
}

describe.each(['stable', 'moving'] as const)('a feed with %s cursors whose service sets its clock back', (cursors) => {
  it('is not caught up before it has stored later deliveries', async () => {
    const offset = { ms: 0 };
    const service = await serve(cursors, offset);
    const store = new ModelStore(Date.now, { monotonic: systemClock.monotonic });
    service.appendCount(3);
    await catchUp(service, store);
    offset.ms = -HOUR_MS;
    const [since] = service.appendCount(1);
    await catchUp(service, store);
    expect(store.rows.has(since?.scanId ?? '')).toBe(true);
    expect(store.rows.size).toBe(4);
  });

  it.each([
    ['an hour', HOUR_MS],
    ['three days, more than is read again', 72 * HOUR_MS],
  ])('is not caught up when the service was restarted with a clock set back by %s', async (_, ms) => {
    const store = new ModelStore(Date.now, { monotonic: systemClock.monotonic });
    const before = await serve(cursors, { ms: 0 });
    before.appendCount(3);
    await catchUp(before, store);
    const service = await serve(cursors, { ms: -ms });
    // The service assigns the same ids again, so the first ones are known.
    const ids = service.appendCount(5).map(({ scanId }) => scanId);
    await catchUp(service, store);
    expect([...store.rows.keys()]).toEqual(expect.arrayContaining(ids));
  });
});
