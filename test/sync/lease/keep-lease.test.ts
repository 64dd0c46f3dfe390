import { expect, it } from 'vitest';
import type { LeaderContext } from '../../../src/sync/context.js';
import { keepLease } from '../../../src/sync/lease/keep-lease.js';
import { createUnfinishedWork } from '../../../src/sync/lease/unfinished-work.js';
import type { LeaseGrant } from '../../../src/sync/ports/index.js';
import { feedStatus } from '../../support/observed.js';

const lease: LeaseGrant = { feed: 'invoices', holder: 'pod-1', epoch: 1, filtersBefore: null };

/** Keeps the lease until the answers end. Returns the reports. */
async function keep(answers: unknown[]): Promise<readonly string[]> {
  const said: string[] = [];
  const context = {
    observer: {
      failed: (stage: string, _: unknown, pauseMs: number) => said.push(`${stage} failed, pause ${pauseMs}`),
      recovered: (stage: string) => said.push(`${stage} recovered`),
      leading: (until: number) => said.push(`leading until ${until}`),
      status: () => {},
    },
    recovery: { answered: () => said.push('answered') },
    leases: { renew: async () => answers.shift() },
  } as unknown as LeaderContext;
  await keepLease(lease, context, createUnfinishedWork(), new AbortController().signal);
  return said;
}

it('reports a recovery when the database answers again, even if the lease was lost', async () => {
  const failed = { error: new Error('away'), pauseMs: 10_000 };
  expect(await keep([failed, failed, { askedAt: 30_000, answer: null }])).toEqual([
    'lease failed, pause 10000',
    'lease failed, pause 10000',
    'answered',
    'lease recovered',
  ]);
});

it('claims the lease for no longer than it is held when a commit prevents its extension', async () => {
  const renewal = { status: feedStatus(), unfinished: [], heldForMs: 19_000 };
  expect(await keep([{ askedAt: 10_000, answer: renewal }, null])).toEqual(['answered', 'leading until 29000']);
});

it('reports no recovery when a commit has extended the lease, and nothing was renewed', async () => {
  const failed = { error: new Error('away'), pauseMs: 10_000 };
  const extended = { askedAt: 30_000, answer: 'extended' };
  expect(await keep([failed, extended, null])).toEqual(['lease failed, pause 10000']);
});
