import { expect, it } from 'vitest';
import type { FeedContext } from '../../../src/sync/context.js';
import { takeLease } from '../../../src/sync/lease/take-lease.js';
import type { FeedStatus } from '../../../src/sync/ports/index.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext, silentObserver } from '../../support/engine.js';
import { feedStatus } from '../../support/observed.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** A feed whose lease this process takes after other attempts, which fail or are deferred (null), and the reports. */
function setup(status: Partial<FeedStatus>, { attempts = [] as (Error | null)[], starting = false } = {}) {
  const said: string[] = [];
  const lease = { feed: 'invoices', holder: 'pod-1', epoch: 2, filtersBefore: null };
  const stop = new AbortController();
  const checks = [...[...attempts, 'last'].map(() => ({ askedAt: 0, answer: feedStatus(status) })), null];
  const context = {
    settings: { stepMs: 0, identity: { name: 'invoices', baseUrl: 'https://service.test/v1' } },
    clock: { random: () => 0, sleep: async () => {} },
    observer: {
      failed: (stage: string, _: unknown, pauseMs: number) => said.push(`${stage} failed, pause ${pauseMs}`),
      ticked: () => {},
      status: () => {},
      leading: (until: number) => said.push(`leading until ${until}`),
      recovered: (stage: string) => said.push(`${stage} recovered`),
    },
    leases: {
      intervalMs: 10_000,
      ttlMs: 30_000,
      mayReplace: (holder: string, isStarting: boolean) => isStarting && holder === 'predecessor',
      checkStatus: async () => checks.shift(),
      take: async () => {
        said.push('attempt');
        const attempt = attempts.shift();
        if (attempt instanceof Error) throw attempt;
        return attempt === undefined ? { askedAt: 5, lease } : null;
      },
    },
  } as unknown as FeedContext;
  return { said, lease, take: () => takeLease(context, stop.signal, starting) };
}

it('reports the recovery of a lease that was lost during the outage', async () => {
  const { said, lease, take } = setup({ leaseHolder: null });
  expect(await take()).toBe(lease);
  expect(said).toEqual(['attempt', 'leading until 30005', 'lease recovered']);
});

it('makes no attempt while another process holds the lease', async () => {
  const { said, take } = setup({ leaseHolder: 'pod-2', baseUrl: 'https://service.test/v1' });
  expect(await take()).toBeNull();
  expect(said).toEqual(['lease recovered']);
});

it('reports no recovery while no attempt is made after one that failed', async () => {
  const elsewhere = new ModelFailure('another_service', 'hold');
  const { said, take } = setup({ leaseHolder: null }, { attempts: [elsewhere, null, elsewhere, null] });
  await take();
  expect(said).toEqual([
    ...['attempt', 'lease failed, pause 1000', 'attempt', 'attempt', 'lease failed, pause 2000', 'attempt'],
    ...['attempt', 'leading until 30005', 'lease recovered'],
  ]);
});

it('reports a recovery when a check succeeds after others that failed, also if no attempt is made', async () => {
  const { said, take } = setup({ leaseHolder: null }, { attempts: [null] });
  await take();
  expect(said).toEqual(['attempt', 'lease recovered', 'attempt', 'leading until 30005', 'lease recovered']);
});

it('replaces a dead predecessor after its last commit when that has locked the feed', async () => {
  const { said, lease, take } = setup({ leaseHolder: 'predecessor' }, { attempts: [null], starting: true });
  expect(await take()).toBe(lease);
  expect(said.filter((text) => text === 'attempt')).toHaveLength(2);
});

it('makes an attempt while another process holds the lease when the feed belongs to another service, which fails', async () => {
  const { said, take } = setup({ leaseHolder: 'pod-2', baseUrl: 'https://elsewhere.test/v1' });
  await take();
  expect(said[0]).toBe('attempt');
});

it('reports a free feed that nobody can take for a minute, and takes it once it can', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic, leaseTtlMs: 10_000 });
  const acquireLease = store.acquireLease.bind(store);
  store.acquireLease = async () => null; // as while another session locks the row
  const said: string[] = [];
  const observer = silentObserver({
    failed: (stage, error) => said.push(`${clock.monotonic()} ${stage} ${(error as ModelFailure).kind}`),
    recovered: (stage) => said.length > 0 && said.push(`${stage} recovered`),
  });
  const stop = new AbortController();
  const context = { clock, store, observer, service: new ModelService(), leaseTtlMs: 10_000 };
  const following = syncFeed(engineContext(context), stop.signal);
  await clock.advance(69_000);
  expect(said).toEqual([]);
  await clock.advance(10_000);
  expect(said.at(-1)).toMatch(/^7\d+(\.\d+)? lease lock_timeout$/);
  store.acquireLease = acquireLease;
  await clock.advance(60_000);
  expect(said.at(-1)).toBe('lease recovered');
  expect(store.feeds.get('default')).toMatchObject({ holder: 'test-process' });
  stop.abort();
  await clock.run(following);
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
