import { expect, it } from 'vitest';
import type { FeedRequest } from '../../src/sync/ports/index.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { entryJson } from '../support/entries.js';
import { followFor } from '../support/follow-for.js';
import { VirtualClock } from '../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
const PAGE = 10;

/** A feed of forty runs, one for each minute of the past hour, whose requests a test sees before they are answered. */
function setUp(before: (request: FeedRequest, signal: AbortSignal) => Promise<void>) {
  const clock = new VirtualClock();
  const service = new ModelService({
    before: async (_operation, request, signal) => before(request as FeedRequest, signal),
  });
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const start = clock.now();
  const entry = (index: number, revision = 1, deliveredAt = start - HOUR_MS + index * 60_000) =>
    entryJson({ scanId: `scan-${index}`, revision, deliveredAt: new Date(deliveredAt).toISOString() });
  service.feed.push(...Array.from({ length: 40 }, (_, index) => entry(index)));
  const follow = async (ms: number, fullIntervalMs: number | null) => {
    const reconcile = { intervalMs: null, windowMs: HOUR_MS, fullIntervalMs };
    await followFor(ms, clock, { service, store, reconcile, maxHeldPages: 1 });
  };
  return { clock, service, store, entry, follow };
}

const hangs = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

it.each([
  ['the last of its page', [9]],
  ['all of its page', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]],
])('claims no run that was not read when a correction in place is %s', async (_, corrected) => {
  const { clock, service, store, entry, follow } = setUp(async ({ start }, signal) => {
    if ('cursor' in start) await hangs(signal);
  });
  for (const index of corrected) service.feed[index] = entry(index, 2, clock.now());
  await follow(10_000, null);
  expect(store.rows.size).toBe(PAGE);
  const firstUnread = clock.now() - 10_000 - HOUR_MS + PAGE * 60_000;
  expect(store.feeds.get('default')?.completeAsOf ?? 0).toBeLessThan(firstUnread);
});

it('reads a full pass to its end when corrections in place are newer than its end', async () => {
  let sweeps = 0;
  const { clock, service, store, entry, follow } = setUp(async ({ start, limit }) => {
    if (!('beginning' in start) || limit !== PAGE || store.feeds.get('default')?.endReachedAt == null) return;
    sweeps += 1;
    // Corrected after the sweep's end was set, and one that the cursor has passed.
    for (const index of [7, 8, 9, 19]) service.feed[index] = entry(index, 2, clock.now());
    if (service.feed.length === 40) service.feed.splice(35, 0, entry(100, 1, clock.now() - HOUR_MS / 2));
  });
  await follow(5_000, null);
  expect(store.rows.size).toBe(40);
  await follow(120_000, 60_000);
  expect(sweeps).toBeGreaterThan(0);
  expect(store.latestPass('full')?.finishedAt).not.toBeNull();
  expect(store.rows.has('scan-100')).toBe(true);
});
