import { expect, it } from 'vitest';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { isCollected } from '../../support/collect-garbage.js';
import { entryJson } from '../../support/entries.js';
import { startFollowing } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

it('releases a page once it is committed, although a report on it waits for the database', async () => {
  const clock = new VirtualClock();
  const service = new ModelService();
  service.feed.push(...Array.from({ length: 10 }, (_, n) => entryJson({ scanId: `scan-${n}` })));
  const bodies: WeakRef<Uint8Array>[] = [];
  const readPage = service.readPage.bind(service);
  service.readPage = async (...request) => {
    const page = await readPage(...request);
    if (page.items.length > 0) bodies.push(new WeakRef(page.body));
    return page;
  };
  const store = new ModelStore(clock.monotonic);
  const budget = createMemoryBudget(64 * 1024 * 1024);
  const whileReporting: { readonly reserved: number; readonly isCollected: boolean }[] = [];
  const storeStuck = store.storeStuck.bind(store);
  store.storeStuck = async (...given) => {
    whileReporting.push({ reserved: budget.reservedBytes, isCollected: await isCollected(bodies[0]) });
    return storeStuck(...given);
  };
  const stop = startFollowing(clock, { service, store, budget });
  while (whileReporting.length === 0) await clock.advance(100);
  await stop();
  expect(store.rows.size).toBe(10);
  expect(whileReporting[0]?.isCollected).toBe(true);
  expect(whileReporting[0]?.reserved).toBeLessThan(100); // the next page, which is empty
});
