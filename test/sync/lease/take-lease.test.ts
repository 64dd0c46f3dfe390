import { describe, expect, it } from 'vitest';
import type { LeaderContext } from '../../../src/sync/context.js';
import type { FeedsRead } from '../../../src/sync/lease/feed-leases.js';
import { takeLease } from '../../../src/sync/lease/take-lease.js';
import type { StoredFeed } from '../../../src/sync/ports/index.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { ModelFailure, StoreFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext, processLease, silentObserver } from '../../support/engine.js';
import { DEFAULT_FILTERS } from '../../support/filters.js';
import { feedStatus } from '../../support/observed.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const OWN_URL = 'https://service.test/v1';

/** A read that finds the feed, free or led by a living process. */
function found(
  leaseHolder: string | null,
  over: Partial<StoredFeed> = {},
  baseUrl: string | null = OWN_URL,
): FeedsRead {
  const status = feedStatus({ leaseHolder, baseUrl });
  const feed: StoredFeed = { status, holder: leaseHolder, epoch: 1, unfinished: [], ...over };
  return { askedAt: 0, feeds: new Map([['invoices', feed]]) };
}

const FREE = found(null);
const LED = found('pod-2');
const failed: FeedsRead = { error: new StoreFailure('connection'), pauseMs: 500, isUsable: true };

interface Given {
  /** Results of the attempts: an error, null if it is not possible now, or the lease. After them, each attempt succeeds. */
  readonly attempts?: readonly (Error | null)[];
  readonly admit?: () => Promise<void>;
  readonly filtersBefore?: typeof DEFAULT_FILTERS;
}

/** A feed that is taken after these reads; without more of them, it is stopped. The reports. */
function setUp(reads: readonly FeedsRead[], { attempts = [], admit, filtersBefore }: Given = {}) {
  const said: string[] = [];
  const left = [...reads];
  const outcomes = [...attempts];
  const lease = { feed: 'invoices', holder: 'pod-1', epoch: 2, filtersBefore: filtersBefore ?? null };
  const context = {
    settings: { stepMs: 1_000, identity: { name: 'invoices', baseUrl: OWN_URL, filters: DEFAULT_FILTERS } },
    clock: { random: () => 0, sleep: async () => {} },
    observer: {
      failed: (stage: string, { kind }: ModelFailure, pauseMs: number) =>
        said.push(`${stage} ${kind}, pause ${pauseMs}`),
      ticked: () => {},
      status: () => said.push('status'),
      leading: (aliveUntil: () => number) => said.push(`leading until ${aliveUntil()}`),
      recovered: (stage: string) => said.push(`${stage} recovered`),
      filtersChanged: () => said.push('filters changed'),
    },
    leases: {
      intervalMs: 10_000,
      process: { ttlMs: 30_000, holder: 'pod-1', aliveUntil: () => 30_005, share: { freeForMs: () => 0 } },
      readEarly: () => said.push('early read'),
      nextRead: async () => left.shift() ?? null,
      take: async (_: unknown, storedHolder: string | null) => {
        said.push(`attempt at the feed of ${storedHolder}`);
        const outcome = outcomes.shift();
        if (outcome instanceof Error) throw outcome;
        return outcome === undefined ? lease : null;
      },
    },
    recovery: { answered: () => {}, pauseAfterFailure: async () => {} },
  } as unknown as LeaderContext;
  const admitted = async () => {
    await admit?.();
  };
  const take = () => takeLease(context, new AbortController().signal, admitted);
  return { said, lease, take };
}

describe('a standby', () => {
  it('takes a free feed at once, and reports a recovery: the lease may have been lost during an outage', async () => {
    const { said, lease, take } = setUp([FREE]);
    expect(await take()).toBe(lease);
    expect(said).toEqual([
      'early read',
      'status',
      'attempt at the feed of null',
      'leading until 30005',
      'lease recovered',
    ]);
  });

  it('makes no attempt while another process leads the feed, and reports its figures at the usual intervals', async () => {
    const { said, take } = setUp([LED, LED]);
    expect(await take()).toBeNull();
    expect(said).toEqual(['early read', 'status', 'lease recovered', 'status', 'lease recovered']);
  });

  it.each([
    ['of a process that is not alive', found(null, { holder: 'pod-2' }), 'pod-2'],
    ['that names this process: the answer to an attempt was lost', found('pod-1'), 'pod-1'],
    ['that names this process, whose lease has expired', found(null, { holder: 'pod-1' }), 'pod-1'],
  ])('takes a feed %s', async (_, read, holder) => {
    const { said, take } = setUp([read]);
    expect(await take()).not.toBeNull();
    expect(said).toContain(`attempt at the feed of ${holder}`);
  });

  it('makes an attempt while another process leads the feed when it belongs to another service: that fails', async () => {
    const elsewhere = found('pod-2', {}, 'https://elsewhere.test/v1');
    const { said, take } = setUp([elsewhere], { attempts: [new ModelFailure('another_service', 'hold')] });
    expect(await take()).toBeNull();
    expect(said).toEqual(['early read', 'status', 'attempt at the feed of pod-2', 'lease another_service, pause 1000']);
  });

  it('makes no attempt at a feed that nothing was read of, whose address may be replaced', async () => {
    const { said, take } = setUp([found('pod-2', {}, null)]);
    expect(await take()).toBeNull();
    expect(said).toEqual(['early read', 'status', 'lease recovered']);
  });

  it('reports each read that fails, with the pause until the next', async () => {
    const { said, take } = setUp([failed, failed, LED]);
    await take();
    expect(said).toEqual(['early read', ...Array(2).fill('lease connection, pause 500'), 'status', 'lease recovered']);
  });

  it('pauses longer after each attempt that fails', async () => {
    const away = new StoreFailure('schema', 'hold');
    const { said, take } = setUp([FREE, FREE, FREE], { attempts: [away, away, away] });
    await take();
    expect(said.filter((text) => text.startsWith('lease'))).toEqual(
      [1_000, 2_000, 4_000].map((ms) => `lease schema, pause ${ms}`),
    );
  });

  it('reports no recovery when an attempt is not possible after one that failed: its cause may persist', async () => {
    const elsewhere = new ModelFailure('another_service', 'hold');
    const { said, take } = setUp([FREE, FREE, FREE], { attempts: [elsewhere, null] });
    await take();
    expect(said.filter((text) => text.startsWith('lease'))).toEqual([
      'lease another_service, pause 1000',
      'lease recovered',
    ]);
  });

  it('takes a feed only once it belongs in its schema', async () => {
    let refusals = 2;
    const admit = async () => {
      refusals -= 1;
      if (refusals >= 0) throw new ModelFailure('another_application', 'hold');
    };
    const { said, take } = setUp([FREE, FREE, FREE], { admit });
    expect(await take()).not.toBeNull();
    expect(said.filter((text) => !text.startsWith('status'))).toEqual([
      'early read',
      ...['lease another_application, pause 1000', 'lease another_application, pause 2000'],
      ...['attempt at the feed of null', 'leading until 30005', 'lease recovered'],
    ]);
  });

  it('checks again where a feed belongs as soon as the key changes', async () => {
    const [clock, service] = [new VirtualClock(), new ModelService()];
    const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
    const keyChanged = (signal: AbortSignal) => clock.sleep(10, signal);
    const stop = new AbortController();
    const checkedAt: number[] = [];
    const context = engineContext({ clock, store, service: Object.assign(service, { keyChanged }) });
    const following = syncFeed(context, stop.signal, async () => {
      checkedAt.push(clock.monotonic());
      if (checkedAt.length < 2) throw new ModelFailure('another_organization', 'hold');
    });
    await clock.advance(500); // less than the shortest pause
    stop.abort();
    await clock.run(following);
    expect(checkedAt).toHaveLength(2);
  });

  it('checks where a feed belongs before each attempt', async () => {
    let checks = 0;
    const admit = async () => {
      checks += 1;
    };
    const given = { attempts: [null, null, null], admit };
    await setUp([FREE, FREE, FREE], given).take();
    expect(checks).toBe(3);
  });

  it('does not check where a feed belongs while another process leads it', async () => {
    const { take, said } = setUp([LED], {
      admit: () => Promise.reject(new ModelFailure('another_application', 'hold')),
    });
    await take();
    expect(said).toEqual(['early read', 'status', 'lease recovered']);
  });

  it('reports that the filters have changed', async () => {
    const { said, take } = setUp([FREE], { filtersBefore: DEFAULT_FILTERS });
    await take();
    expect(said).toContain('filters changed');
  });
});

describe('a free feed', () => {
  /** The engine with a database that takes no feed, as while another session locks the row. */
  function locked() {
    const clock = new VirtualClock();
    const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
    const acquireLease = store.acquireLease.bind(store);
    store.acquireLease = async () => null;
    const said: string[] = [];
    const observer = silentObserver({
      failed: (stage, error) => said.push(`${stage} ${(error as ModelFailure).kind}`),
      recovered: (stage) => said.length > 0 && said.push(`${stage} recovered`),
    });
    const process = processLease({ clock, store, ttlMs: 10_000 });
    const stop = new AbortController();
    const context = engineContext({ clock, store, observer, process, service: new ModelService() });
    const running = Promise.all([syncFeed(context, stop.signal), process.keep(stop.signal)]);
    const end = () => {
      stop.abort();
      return clock.run(running);
    };
    const unlock = () => {
      store.acquireLease = acquireLease;
    };
    return { clock, store, said, unlock, end };
  }

  it('is reported when nobody can take it for a minute beyond the time to live, and is taken once that is possible', async () => {
    const { clock, store, said, unlock, end } = locked();
    await clock.advance(69_000);
    expect(said).toEqual([]);
    await clock.advance(10_000);
    expect(said.at(-1)).toBe('lease lock_timeout');
    unlock();
    await clock.advance(60_000);
    expect(said.at(-1)).toBe('lease recovered');
    expect(store.feeds.get('default')).toMatchObject({ holder: 'test-process' });
    await end();
  });

  it('is not reported when it is taken within a minute', async () => {
    const { clock, store, said, unlock, end } = locked();
    await clock.advance(60_000);
    unlock();
    await clock.advance(10_000);
    expect(store.feeds.get('default')).toMatchObject({ holder: 'test-process' });
    expect(said).toEqual([]);
    await end();
  });
});
