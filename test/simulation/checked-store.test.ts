import { expect, it } from 'vitest';
import { batchOf } from '../../src/sync/page/check-entries.js';
import { VirtualClock } from '../support/virtual-clock.js';
import { CheckedStore } from './checked-store.js';
import { noCoverage } from './coverage.js';
import { choicesFrom } from './random-choices.js';
import { SimulatedService } from './simulated-service.js';
import { chooseTraits } from './traits.js';

it('reports no broken promise when results and a page are committed at the same time', async () => {
  const clock = new VirtualClock();
  const choices = choicesFrom(1);
  const traits = chooseTraits(choices, clock.now());
  const service = new SimulatedService('default', clock, choices, traits.service, false, noCoverage());
  const store = new CheckedStore(clock, new Map([['default', service]]), traits, noCoverage());
  const identity = { filters: traits.filters, name: 'default', baseUrl: 'https://service.test/v1' } as const;
  const lease = await store.acquireLease({ ...identity, keepHistory: true, start: 'beginning' }, 'process');
  if (lease === null) throw new Error('the lease is free');
  const request = { filters: traits.filters, start: { beginning: true }, limit: 10, markdown: false } as const;
  const page = await clock.run(service.readPage(request, new AbortController().signal));
  const empty = { batch: batchOf([]), quarantine: [] };
  const freshness = { end: 'no' as const, polledAt: clock.monotonic(), completeUpTo: null, lastDeliveredAt: null };
  await Promise.all([
    store.commitResults(lease, empty.batch),
    store.commitPage({ lease, from: null, to: page.nextCursor, freshness, ...empty }),
  ]);
  expect(store.broken).toBeNull();
  expect((await store.readPosition(lease.feed)).cursor).toBe(page.nextCursor);
});
