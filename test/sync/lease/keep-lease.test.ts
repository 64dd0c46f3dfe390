import { expect, it } from 'vitest';
import type { LeaderContext } from '../../../src/sync/context.js';
import type { FeedsRead } from '../../../src/sync/lease/feed-leases.js';
import { keepLease } from '../../../src/sync/lease/keep-lease.js';
import { createUnfinishedWork } from '../../../src/sync/lease/unfinished-work.js';
import type { LeaseGrant, PassKind, StoredFeed } from '../../../src/sync/ports/index.js';
import { StoreFailure } from '../../simulation/model-failure.js';
import { feedStatus } from '../../support/observed.js';

const lease: LeaseGrant = { feed: 'invoices', holder: 'pod-1', epoch: 1, filtersBefore: null };

/** A read that finds the feed as this process leads it, except for what is given. */
function found(over: Partial<StoredFeed> = {}): FeedsRead {
  const feed: StoredFeed = { status: feedStatus(), holder: 'pod-1', epoch: 1, unfinished: [], ...over };
  return { askedAt: 0, feeds: new Map([['invoices', feed]]) };
}

const failed = (isUsable = true): FeedsRead => ({ error: new StoreFailure('connection'), pauseMs: 500, isUsable });

interface Given {
  /** Feeds that the process is to give back. */
  readonly surplus?: readonly string[];
}

/** Keeps the lease until the reads end. Returns the reports, and the reads that were not needed. */
async function keep(reads: readonly FeedsRead[], { surplus = [] }: Given = {}) {
  const said: string[] = [];
  const left = [...reads];
  let isFailing = false;
  const context = {
    observer: {
      failed: (stage: string, { kind }: StoreFailure, pauseMs: number) => {
        isFailing = true;
        said.push(`${stage} ${kind}, pause ${pauseMs}`);
      },
      recovered: (stage: string) => {
        if (isFailing) said.push(`${stage} recovered`);
        isFailing = false;
      },
      status: ({ pendingResults }: { readonly pendingResults: number }) => said.push(`${pendingResults} pending`),
    },
    recovery: { answered: () => said.push('answered') },
    leases: {
      nextRead: async () => left.shift() ?? null,
      process: { share: { isSurplus: (feed: string) => surplus.includes(feed) } },
    },
  } as unknown as LeaderContext;
  const work = createUnfinishedWork();
  await keepLease(lease, context, work, new AbortController().signal);
  return { said, left: left.length, work };
}

it('reports the figures of the feed at each read until the feed stops', async () => {
  const { said } = await keep([1, 2].map((pendingResults) => found({ status: feedStatus({ pendingResults }) })));
  expect(said).toEqual(['answered', '1 pending', 'answered', '2 pending']);
});

it('keeps the unfinished passes and whether there are pending results', async () => {
  const kinds: readonly PassKind[] = ['history', 'backfill'];
  const { work } = await keep([found({ unfinished: ['backfill'], status: feedStatus({ pendingResults: 1 }) })]);
  expect(kinds.map(work.mayHavePass)).toEqual([false, true]);
  expect(work.mayHavePending()).toBe(true);
});

it.each<[string, FeedsRead]>([
  ['another process has taken the feed', found({ holder: 'pod-2', epoch: 2 })],
  [
    'another process has taken the feed at the same epoch, since the database has lost commits',
    found({ holder: 'pod-2' }),
  ],
  ['a command has raised the epoch', found({ epoch: 2 })],
  ['the database has lost that it was taken', found({ epoch: 0, holder: null })],
])('ends without reporting figures when %s', async (_, read) => {
  expect(await keep([found(), read, found()])).toMatchObject({ said: ['answered', '0 pending', 'answered'], left: 1 });
});

it('continues when the lease of the process has expired, but no other one took the feed', async () => {
  const { left } = await keep([found({ status: feedStatus({ leaseHolder: null }) }), found()]);
  expect(left).toBe(0);
});

it('ends when the feed is to be given back, and only then', async () => {
  expect(await keep([found(), found()], { surplus: ['other'] })).toMatchObject({ left: 0 });
  expect(await keep([found(), found()], { surplus: ['other', 'invoices'] })).toMatchObject({
    said: ['answered'],
    left: 1,
  });
});

it('keeps trying while reads fail, and reports the recovery once', async () => {
  const { said } = await keep([failed(), failed(), found(), found()]);
  expect(said).toEqual([
    ...['lease connection, pause 500', 'lease connection, pause 500'],
    ...['answered', 'lease recovered', '0 pending', 'answered', '0 pending'],
  ]);
});

it('reports a recovery also when the lease was lost meanwhile', async () => {
  const { said } = await keep([failed(), found({ holder: 'pod-2' })]);
  expect(said).toEqual(['lease connection, pause 500', 'answered', 'lease recovered']);
});

it('ends when a read fails since a newer release has taken over the schema', async () => {
  const { said, left } = await keep([failed(false), found()]);
  expect([said, left]).toEqual([['lease connection, pause 500'], 1]);
});
