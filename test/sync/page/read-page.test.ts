import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { receivePageWithin } from '../../../src/sync/page/read-page.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A page, and a weak hold on one of the entries that it was made from. */
async function readOne() {
  const service = new ModelService();
  service.feed.push(entryJson({ scanId: 'scan' }));
  const asReceived = service.readPage.bind(service);
  let entry: WeakRef<object> | undefined;
  service.readPage = async (request, signal) => {
    const page = await asReceived(request, signal);
    entry = new WeakRef(page.items[0] as object);
    return page;
  };
  const context = engineContext({ clock: systemClock, service, store: new ModelStore(systemClock.monotonic) });
  const ticket = context.budget.enqueue('feed');
  const { signal } = new AbortController();
  const received = await receivePageWithin(ticket, context, { cursor: null, since: null }, signal);
  return { page: received.check(), received, isHeld: () => entry?.deref() !== undefined };
}

it('releases the parsed entries of a page once they are checked, since the memory budget does not count them', async () => {
  const { page, received, isHeld } = await readOne();
  await turn();
  collectGarbage();
  expect(isHeld()).toBe(false);
  // Reading ahead still holds both.
  expect(page.monotonicTimeOf(new Date(0))).toBeLessThanOrEqual(page.polledAt);
  expect(received.items).toBe(1);
});
