import { expect, it } from 'vitest';
import type { FeedContext } from '../../../src/sync/context.js';
import { takeLease } from '../../../src/sync/lease/take-lease.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext } from '../../support/engine.js';
import { feedStatus } from '../../support/observed.js';
import { VirtualClock } from '../../support/virtual-clock.js';

it('reports the recovery of a lease that was lost during the outage', async () => {
  const said: string[] = [];
  const lease = { feed: 'invoices', holder: 'pod-1', epoch: 2, filtersBefore: null };
  const context = {
    clock: { sleep: async () => {}, monotonic: () => 0 },
    leaseTtlMs: 30_000,
    identity: { name: 'invoices' },
    observer: {
      ticked: () => {},
      status: () => {},
      leading: () => said.push('leading'),
      recovered: (stage: string) => said.push(`${stage} recovered`),
    },
    ready: async () => {},
    store: { readStatus: async () => feedStatus(), acquireLease: async () => lease },
  } as unknown as FeedContext;
  expect(await takeLease(context, new AbortController().signal)).toBe(lease);
  expect(said).toEqual(['leading', 'lease recovered']);
});

it('replaces a predecessor at the first attempt of a process only, so that two that look dead to each other do not alternate', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic, leaseTtlMs: 10_000 });
  const stop = new AbortController();
  const start = (holder: string) => {
    const context = { clock, store, service: new ModelService(), holder, leaseTtlMs: 10_000, isDead: () => true };
    return syncFeed(engineContext(context), stop.signal);
  };
  const held = () => {
    const { holder, epoch } = store.feeds.get('default') ?? {};
    return { holder, epoch };
  };
  const following = [start('one')];
  await clock.advance(1_000);
  expect(held()).toEqual({ holder: 'one', epoch: 1 });
  following.push(start('two'));
  await clock.advance(1_000);
  expect(held()).toEqual({ holder: 'two', epoch: 2 });
  await clock.advance(3_600_000);
  expect(held()).toEqual({ holder: 'two', epoch: 2 });
  stop.abort();
  await clock.run(Promise.all(following));
});
