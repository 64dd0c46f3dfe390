import { expect, it } from 'vitest';
import type { FeedContext } from '../../../src/sync/context.js';
import { keepLease } from '../../../src/sync/lease/keep-lease.js';
import { createUnfinishedPasses } from '../../../src/sync/passes/unfinished-passes.js';
import type { LeaseGrant } from '../../../src/sync/ports/index.js';

const lease: LeaseGrant = { feed: 'invoices', holder: 'pod-1', epoch: 1, filtersBefore: null };

it('reports a recovery when the database answers again, even if the lease was lost', async () => {
  const said: string[] = [];
  const answers = [new Error('away'), new Error('away'), null];
  const context = {
    clock: { sleep: async () => {}, monotonic: () => 0 },
    leaseTtlMs: 30_000,
    observer: {
      failed: (stage: string, _: unknown, failures: number) => said.push(`${stage} failed ${failures}`),
      recovered: (stage: string, failures: number) => said.push(`${stage} recovered ${failures}`),
    },
    store: {
      renewLease: async () => {
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer;
      },
    },
  } as unknown as FeedContext;
  await keepLease(lease, context, createUnfinishedPasses(), new AbortController().signal);
  expect(said).toEqual(['lease failed 1', 'lease failed 2', 'lease recovered 2']);
});
