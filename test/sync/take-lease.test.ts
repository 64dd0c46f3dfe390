import { expect, it } from 'vitest';
import type { FeedContext } from '../../src/sync/context.js';
import { takeLease } from '../../src/sync/take-lease.js';
import { feedStatus } from '../support/observed.js';

it('ends the outage of a lease that was lost meanwhile: who held it is told of no success any more', async () => {
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
