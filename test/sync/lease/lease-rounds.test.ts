import { describe, expect, it } from 'vitest';
import { createLeaseRounds, type LeaseRounds } from '../../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../../src/sync/lease/process-leases.js';
import type { FeedIdentity, LeaseGrant, LeaseRenewal } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { usableSchema } from '../../support/engine.js';
import { feedStatus } from '../../support/observed.js';
import { testFeed } from '../../support/store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const INTERVAL_MS = TTL_MS / 3;
const FEEDS = ['a', 'b', 'c'];

/** The rounds of a process, and the calls of its store. */
function setup(over: Partial<ModelStore> = {}, ttlMs = TTL_MS) {
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
  const leases = createProcessLeases({ clock, holder: 'process', isDead: () => false, leaseTtlMs: ttlMs });
  const rounds = createLeaseRounds(leases, { ...usableSchema(counted), ready });
  const stop = new AbortController();
  const check = (feed: string, immediately = true) => {
    rounds.follow(feed);
    return rounds.checkStatus(feed, stop.signal, immediately);
  };
  const take = async (name: string) => {
    rounds.follow(name);
    const taken = await rounds.take(testFeed({ name }), null, stop.signal);
    if (taken === null) throw new Error('the lease was not taken');
    return taken.lease;
  };
  return { clock, store, calls, rounds, stop, check, take };
}

/** The answer to a renewal; null: there is none, or the lease was lost. */
function answerOf(round: Awaited<ReturnType<LeaseRounds['renew']>>) {
  return round !== null && 'answer' in round ? round.answer : null;
}

describe('a check of the status', () => {
  it('happens at once when feeds have just started, in one statement for all', async () => {
    const { clock, calls, check } = setup();
    const checks = await clock.run(Promise.all(FEEDS.map((feed) => check(feed))));
    expect(calls).toEqual(['0 ready', '0 checkIn', '0 readStatuses']);
    expect(checks).toMatchObject(FEEDS.map(() => ({ askedAt: 0, answer: { leaseHolder: null } })));
  });

  it('waits for the next round when a feed is checked again, and happens at once when another feed starts', async () => {
    const { clock, calls, check } = setup();
    await clock.run(Promise.all([check('a'), check('c')]));
    calls.length = 0;
    const again = check('a', false);
    await clock.advance(1_000);
    const started = check('b');
    await clock.run(Promise.all([again, started]));
    expect(calls).toEqual(['1000 ready', '1000 readStatuses']); // it has checked in a second before
    await clock.run(check('a', false));
    expect(calls.at(-1)).toBe(`${1_000 + INTERVAL_MS} readStatuses`);
  });

  it('reports a failure to each feed, with the pause until the next check, which nothing shortens', async () => {
    let isAway = true;
    const { clock, store, calls, check } = setup({
      readStatuses: async (feeds) => {
        if (isAway) throw new ModelFailure('connection');
        return ModelStore.prototype.readStatuses.call(store, feeds);
      },
    });
    const failed = await clock.run(Promise.all(FEEDS.map((feed) => check(feed))));
    const { pauseMs } = failed[0] as { pauseMs: number };
    expect(pauseMs).toBeLessThanOrEqual(500);
    expect(failed).toEqual(FEEDS.map(() => ({ error: expect.any(ModelFailure), pauseMs })));
    isAway = false;
    calls.length = 0;
    await clock.run(Promise.all([check('a', false), check('new')]));
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
    const leases = createProcessLeases({ clock, holder: 'process', isDead: () => false, leaseTtlMs: TTL_MS });
    const rounds = createLeaseRounds(leases, { ...usableSchema(store), ready });
    const [first, last] = [new AbortController(), new AbortController()];
    const checks = [rounds.checkStatus('a', first.signal, true), rounds.checkStatus('b', last.signal, true)];
    await clock.advance(1_000);
    first.abort();
    expect(await checks[0]).toBeNull();
    expect(isWaiting).toBe(true);
    last.abort();
    expect(await checks[1]).toBeNull();
    expect(isWaiting).toBe(false);
  });
});

it('every wait rejects when a bug ends the rounds', async () => {
  const { clock, check } = setup({
    readStatuses: async () => {
      throw new ModelFailure('connection');
    },
  });
  clock.random = () => {
    throw new Error('a bug');
  };
  const checks = FEEDS.map((feed) => check(feed));
  await expect(clock.run(Promise.any(checks))).rejects.toMatchObject({ errors: FEEDS.map(() => new Error('a bug')) });
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
    expect(calls.sort()).toEqual(
      [1, 2].flatMap((round) => [`${round * INTERVAL_MS} checkIn`, `${round * INTERVAL_MS} renewLeases`]),
    );
  });

  it('leaves out a lease that a commit has just extended, but reads the state of its feed within the time to live', async () => {
    const { clock, calls, rounds, stop, take } = setup({}, 9_000);
    const lease = await take('a');
    calls.length = 0;
    const held: unknown[] = [];
    const renew = async () => {
      const round = await clock.run(rounds.renew(lease, stop.signal));
      held.push(answerOf(round));
    };
    for (const sentAt of [null, 4_000, 8_500, 11_000, 12_500]) {
      if (sentAt !== null) rounds.extended(lease, sentAt);
      await renew();
    }
    // At 3, 6, 9, 12 and 15 s. At 12 s, the state was read 9 s ago.
    expect(held).toMatchObject([{ heldForMs: 9_000 }, 'extended', 'extended', { heldForMs: 9_000 }, 'extended']);
    expect(calls).toEqual(['3000 renewLeases', '12000 renewLeases']);
  });

  it('does not leave out a lease when the last commit is older than a round, or was of an earlier lease', async () => {
    const { clock, calls, rounds, stop, take } = setup({}, 9_000);
    const lease = await take('a');
    const renew = () => clock.run(rounds.renew(lease, stop.signal));
    await renew();
    calls.length = 0;
    rounds.extended(lease, 2_900);
    await renew();
    rounds.extended(lease, 8_900);
    await rounds.release(lease);
    await renew();
    expect(calls).toEqual(['6000 renewLeases', '6000 releaseLease', '9000 renewLeases']);
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
      renewLeases: async () => {
        throw new ModelFailure('connection');
      },
    });
    const lease = await take('a');
    calls.length = 0;
    for (let round = 0; round < 3; round += 1) {
      expect(await clock.run(rounds.renew(lease, stop.signal))).toMatchObject({ pauseMs: INTERVAL_MS });
    }
    expect(calls).toEqual([1, 2, 3].map((round) => `${round * INTERVAL_MS} renewLeases`));
  });

  it('is left to the next round when a commit prevents it and most of the lease is left', async () => {
    const { renewals, waiting } = await renewLocked(0.6);
    expect(waiting).toBe(0);
    expect(renewals).toEqual([0.6, 0.6]);
  });

  it('waits for one commit at a time when little of the leases is left', async () => {
    const { renewals, waiting } = await renewLocked(0.3);
    expect(waiting).toBe(1);
    expect(renewals).toEqual([1, 0.3]);
  });

  /** Renews two leases whose rows are locked. Returns the parts of the time to live that are left. */
  async function renewLocked(left: number) {
    const renewal: LeaseRenewal = { status: feedStatus(), unfinished: [], heldForMs: left * TTL_MS };
    const { clock, calls, rounds, stop, take } = setup({
      renewLeases: async (leases) => new Map(leases.map(({ feed }: LeaseGrant) => [feed, renewal])),
    });
    const leases = await Promise.all(['a', 'b'].map(take));
    const renewed = await clock.run(Promise.all(leases.map((lease) => rounds.renew(lease, stop.signal))));
    const renewals = renewed.map((round) => {
      const answer = answerOf(round);
      return answer === null || answer === 'extended' ? null : answer.heldForMs / TTL_MS;
    });
    return { renewals, waiting: calls.filter((call) => call.endsWith('renewLease')).length };
  }

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

it('leaves a locked feed to the next check, and the right to take it beyond the share stays', async () => {
  let isLocked = true;
  const { clock, store, rounds, stop, check, take } = setup({
    acquireLease: async (...given) => (isLocked && given[0].name === 'b' ? null : store.acquireLease(...given)),
  });
  await store.checkIn('other', 2, 10 * TTL_MS);
  await clock.run(Promise.all(['a', 'b'].map((feed) => check(feed))));
  await take('a');
  const takeB = () => rounds.take(testFeed({ name: 'b' }), null, stop.signal);
  expect(await takeB()).toBeNull(); // its share is one feed
  await clock.advance(TTL_MS);
  expect(await takeB()).toBeNull();
  isLocked = false;
  await clock.run(check('b', false));
  expect(await takeB()).toMatchObject({ lease: { feed: 'b' } });
});

it('takes all leases of its dead predecessor, which no longer counts as a process', async () => {
  const { clock, store, rounds, stop, check } = setup();
  for (const name of FEEDS) await store.acquireLease(testFeed({ name }), 'predecessor', TTL_MS);
  await store.checkIn('predecessor', FEEDS.length, TTL_MS);
  await clock.run(Promise.all(FEEDS.map((feed) => check(feed))));
  const taken = await Promise.all(FEEDS.map((name) => rounds.take(testFeed({ name }), 'predecessor', stop.signal)));
  expect(taken).toMatchObject(FEEDS.map((feed) => ({ lease: { feed, holder: 'process' } })));
  expect([...store.processes.keys()]).toEqual(['process']);
});
