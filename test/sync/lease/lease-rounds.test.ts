import { describe, expect, it } from 'vitest';
import { createLeaseRounds } from '../../../src/sync/lease/lease-rounds.js';
import type { FeedIdentity, LeaseGrant, LeaseRenewal } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { feedStatus } from '../../support/observed.js';
import { testFeed } from '../../support/store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const INTERVAL_MS = TTL_MS / 3;
const FEEDS = ['a', 'b', 'c'];

/** The rounds of a process, and the calls of its store. */
function setup(over: Partial<ModelStore> = {}) {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.monotonic);
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name) => {
      const method = (over[name as keyof ModelStore] ?? Reflect.get(target, name)) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        calls.push(`${clock.monotonic()} ${String(name)}`);
        return method.apply(target, args);
      };
    },
  });
  const ready = async () => void calls.push(`${clock.monotonic()} ready`);
  const rounds = createLeaseRounds({ store: counted, clock, holder: 'process', leaseTtlMs: TTL_MS, ready });
  const stop = new AbortController();
  const look = (feed: string, atOnce = true) => {
    rounds.follow(feed);
    return rounds.look(feed, stop.signal, atOnce);
  };
  const take = async (name: string) => {
    rounds.follow(name);
    const { lease } = await rounds.take(testFeed({ name }), null, stop.signal);
    if (lease === null) throw new Error('the lease is held');
    return lease;
  };
  return { clock, store, calls, rounds, stop, look, take };
}

describe('a look', () => {
  it('happens at once when feeds have just started, in one statement for all', async () => {
    const { clock, calls, look } = setup();
    const looks = await clock.run(Promise.all(FEEDS.map((feed) => look(feed))));
    expect(calls).toEqual(['0 ready', '0 checkIn', '0 readStatuses']);
    expect(looks).toMatchObject(FEEDS.map(() => ({ askedAt: 0, answer: { leaseHolder: null } })));
  });

  it('waits for the next round when a feed looks again, and happens at once when another feed starts', async () => {
    const { clock, calls, look } = setup();
    await clock.run(Promise.all([look('a'), look('c')]));
    calls.length = 0;
    const again = look('a', false);
    await clock.advance(1_000);
    const started = look('b');
    await clock.run(Promise.all([again, started]));
    expect(calls).toEqual(['1000 ready', '1000 readStatuses']); // it has checked in a second before
    await clock.run(look('a', false));
    expect(calls.at(-1)).toBe(`${1_000 + INTERVAL_MS} readStatuses`);
  });

  it('reports a failure to each feed, with the pause until the next look, which nothing shortens', async () => {
    let isAway = true;
    const { clock, store, calls, look } = setup({
      readStatuses: async (feeds) => {
        if (isAway) throw new ModelFailure('connection');
        return ModelStore.prototype.readStatuses.call(store, feeds);
      },
    });
    const failed = await clock.run(Promise.all(FEEDS.map((feed) => look(feed))));
    const { pauseMs } = failed[0] as { pauseMs: number };
    expect(pauseMs).toBeLessThanOrEqual(500);
    expect(failed).toEqual(FEEDS.map(() => ({ error: expect.any(ModelFailure), pauseMs })));
    isAway = false;
    calls.length = 0;
    await clock.run(Promise.all([look('a', false), look('new')]));
    expect(calls).toEqual([`${pauseMs} ready`, `${pauseMs} readStatuses`]);
  });

  it('ends at once when the feed stops, and the wait for the schema ends with the last feed', async () => {
    const clock = new VirtualClock();
    const store = new ModelStore(clock.monotonic);
    let isWaiting = true;
    const ready = (signal: AbortSignal) =>
      new Promise<void>((_, reject) =>
        signal.addEventListener('abort', () => {
          isWaiting = false;
          reject(signal.reason);
        }),
      );
    const rounds = createLeaseRounds({ store, clock, holder: 'process', leaseTtlMs: TTL_MS, ready });
    const [first, last] = [new AbortController(), new AbortController()];
    const looks = [rounds.look('a', first.signal, true), rounds.look('b', last.signal, true)];
    await clock.advance(1_000);
    first.abort();
    expect(await looks[0]).toBeNull();
    expect(isWaiting).toBe(true);
    last.abort();
    expect(await looks[1]).toBeNull();
    expect(isWaiting).toBe(false);
  });
});

it('every wait rejects when a bug ends the rounds', async () => {
  const { clock, look } = setup({
    readStatuses: async () => {
      throw new ModelFailure('connection');
    },
  });
  clock.random = () => {
    throw new Error('a bug');
  };
  const looks = FEEDS.map((feed) => look(feed));
  await expect(clock.run(Promise.any(looks))).rejects.toMatchObject({ errors: FEEDS.map(() => new Error('a bug')) });
});

describe('a renewal', () => {
  it('is one statement for all leases in each round', async () => {
    const { clock, calls, rounds, stop, take } = setup();
    const leases = await Promise.all(FEEDS.map(take));
    calls.length = 0;
    for (let round = 0; round < 2; round += 1) {
      const renewals = await clock.run(Promise.all(leases.map((lease) => rounds.renew(lease, stop.signal))));
      expect(renewals).toMatchObject(FEEDS.map(() => ({ answer: { heldForMs: TTL_MS } })));
    }
    expect(calls).toEqual(
      [1, 2].flatMap((round) => [`${round * INTERVAL_MS} renewLeases`, `${round * INTERVAL_MS} checkIn`]),
    );
  });

  it('reports a lost lease to its feed only', async () => {
    const { clock, store, rounds, stop, take } = setup();
    const leases = await Promise.all(FEEDS.map(take));
    store.rewind('b', null);
    const renewals = await clock.run(Promise.all(leases.map((lease) => rounds.renew(lease, stop.signal))));
    expect(renewals.map((round) => round !== null && 'answer' in round && round.answer !== null)).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('has the interval also after failures', async () => {
    const { clock, calls, rounds, stop, take } = setup({
      renewLease: async () => {
        throw new ModelFailure('connection');
      },
    });
    const lease = await take('a');
    calls.length = 0;
    for (let round = 0; round < 3; round += 1) {
      expect(await clock.run(rounds.renew(lease, stop.signal))).toMatchObject({ pauseMs: INTERVAL_MS });
    }
    expect(calls).toEqual([1, 2, 3].map((round) => `${round * INTERVAL_MS} renewLease`));
  });

  it.each([
    ['is left to the next round when a commit prevents it and most of the lease is left', 0.6, 0],
    ['waits for the commit when little of the lease is left', 0.3, 1],
  ])('%s', async (_, share, waits) => {
    const renewal: LeaseRenewal = { status: feedStatus(), unfinished: [], heldForMs: share * TTL_MS };
    const { clock, calls, rounds, stop, take } = setup({
      renewLeases: async (leases) => new Map(leases.map(({ feed }: LeaseGrant) => [feed, renewal])),
    });
    const leases = await Promise.all(['a', 'b'].map(take));
    const renewals = await clock.run(Promise.all(leases.map((lease) => rounds.renew(lease, stop.signal))));
    expect(calls.filter((call) => call.endsWith('renewLease'))).toHaveLength(waits * leases.length);
    const heldForMs = waits === 0 ? renewal.heldForMs : TTL_MS;
    expect(renewals).toMatchObject(leases.map(() => ({ answer: { heldForMs } })));
  });

  it('keeps the leases when the process cannot check in', async () => {
    const { clock, rounds, stop, take } = setup({
      checkIn: async () => {
        throw new ModelFailure('connection');
      },
    });
    const leases = await Promise.all(FEEDS.map(take));
    const renewals = await clock.run(Promise.all(leases.map((lease) => rounds.renew(lease, stop.signal))));
    expect(renewals).toMatchObject(FEEDS.map(() => ({ answer: { heldForMs: TTL_MS } })));
  });

  it('ends at once when the feed stops, and with the last one the rounds', async () => {
    const { clock, rounds, stop, take } = setup();
    const renewed = rounds.renew(await take('a'), stop.signal);
    stop.abort();
    expect(await renewed).toBeNull();
    await expect(clock.run(new Promise(() => {}))).rejects.toThrow('nothing is left to happen');
    expect(clock.monotonic()).toBe(0);
  });
});

it('takes a bounded number of leases at once', async () => {
  const running = new Set<FeedIdentity>();
  let most = 0;
  const { clock, rounds } = setup({
    acquireLease: async (feed) => {
      running.add(feed);
      most = Math.max(most, running.size);
      await clock.pause(10);
      running.delete(feed);
      return null;
    },
  });
  const feeds = Array.from({ length: 20 }, (_, n) => testFeed({ name: `feed-${n}` }));
  for (const { name } of feeds) rounds.follow(name);
  await clock.run(Promise.all(feeds.map((feed) => rounds.take(feed, null, new AbortController().signal))));
  expect(most).toBe(8);
});

it('takes all leases of its dead predecessor, which no longer counts as a process', async () => {
  const { clock, store, rounds, stop, look } = setup();
  for (const name of FEEDS) await store.acquireLease(testFeed({ name }), 'predecessor', TTL_MS);
  await store.checkIn('predecessor', FEEDS.length, TTL_MS);
  await clock.run(Promise.all(FEEDS.map((feed) => look(feed))));
  const taken = await Promise.all(FEEDS.map((name) => rounds.take(testFeed({ name }), 'predecessor', stop.signal)));
  expect(taken).toMatchObject(FEEDS.map((feed) => ({ lease: { feed, holder: 'process' } })));
  expect([...store.processes.keys()]).toEqual(['process']);
});
