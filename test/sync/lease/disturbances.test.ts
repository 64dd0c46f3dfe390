import { describe, expect, it } from 'vitest';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { StoreFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type Choices, choicesFrom } from '../../simulation/random-choices.js';
import { engineContext, processLease } from '../../support/engine.js';
import { FEEDS, LeaseCluster, ROUND_MS, SCHEMA_FOR_TWO, STANDBY_MS, TTL_MS } from '../../support/lease-cluster.js';
import type { LeaseProcess } from '../../support/lease-process.js';
import { cases } from '../../support/thorough.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
/** Until a process that leads all feeds has read them. */
const READ_MS = 10_000;

/** Three processes that share all feeds. */
async function shared() {
  const cluster = new LeaseCluster();
  const [first, second, third] = (await cluster.startShared(3)) as [LeaseProcess, LeaseProcess, LeaseProcess];
  const epochs = cluster.epochs();
  return { cluster, first, second, third, epochs };
}

/** Returns the number of feeds that each process leads. */
async function counts(cluster: LeaseCluster): Promise<readonly number[]> {
  return [...(await cluster.led()).values()].map(({ length }) => length);
}

/** Expects that every feed is led, evenly by all processes, and stays where it is. */
async function expectEvenShares(cluster: LeaseCluster): Promise<void> {
  await cluster.settle();
  const share = FEEDS.length / cluster.processes.length;
  expect(await counts(cluster)).toEqual(cluster.processes.map(() => share));
  await expectAllLed(cluster);
}

/** Expects that every feed is led, and stays where it is. */
async function expectAllLed(cluster: LeaseCluster): Promise<void> {
  await cluster.settle();
  expect(await cluster.allLed()).toEqual([...FEEDS].sort());
  const epochs = cluster.epochs();
  await cluster.settle();
  expect(cluster.epochs()).toEqual(epochs);
  await cluster.stopAll();
}

/** Expects that no feed has changed its process, and that all are led. */
async function expectNoneMoved(cluster: LeaseCluster, epochs: readonly number[]): Promise<void> {
  await cluster.settle();
  expect(cluster.epochs()).toEqual(epochs);
  expect(await counts(cluster)).toEqual([4, 4, 4]);
  await cluster.stopAll();
}

describe('no feed changes its process', () => {
  it('when the database fails over and loses the renewals of all processes', async () => {
    const { cluster, epochs } = await shared();
    const failOver = cluster.snapshot();
    await cluster.clock.advance(10 * TTL_MS);
    failOver();
    await expectNoneMoved(cluster, epochs);
  });

  it('when the table of the processes is emptied by hand', async () => {
    const { cluster, epochs } = await shared();
    cluster.home.processes.clear();
    await expectNoneMoved(cluster, epochs);
  });

  it.each([-HOUR_MS, -TTL_MS, -TTL_MS / 2, TTL_MS / 2, TTL_MS, HOUR_MS])(
    'when the clock of the database jumps by %i ms',
    async (jumpMs) => {
      const { cluster, epochs } = await shared();
      cluster.databaseAheadMs = jumpMs;
      await expectNoneMoved(cluster, epochs);
    },
  );

  it('when the database is unreachable for all processes for an hour', async () => {
    const { cluster, epochs } = await shared();
    for (const process of cluster.processes) cluster.faultsOf(process).isCutOff = true;
    await cluster.clock.advance(HOUR_MS);
    for (const process of cluster.processes) cluster.faultsOf(process).isCutOff = false;
    await expectNoneMoved(cluster, epochs);
  });

  it('when all processes are paused, since their machine was', async () => {
    const { cluster, epochs } = await shared();
    const thaws = cluster.processes.map((process) => process.freeze());
    await cluster.clock.advance(HOUR_MS);
    for (const thaw of thaws) thaw();
    await expectNoneMoved(cluster, epochs);
  });

  it('when a process is paused for less than the time to live', async () => {
    const { cluster, first, epochs } = await shared();
    const thaw = first.freeze();
    await cluster.clock.advance(TTL_MS / 2);
    thaw();
    await expectNoneMoved(cluster, epochs);
  });

  it('when two renewals in a row fail', async () => {
    const { cluster, first, epochs } = await shared();
    cluster.faultsOf(first).cannotRenew = true;
    await cluster.clock.advance((2 / 3) * TTL_MS - STANDBY_MS);
    cluster.faultsOf(first).cannotRenew = false;
    await expectNoneMoved(cluster, epochs);
  });
});

it('leads the feeds of a process that stops soon after it has joined, even if the time to live is an hour', async () => {
  const cluster = new LeaseCluster();
  cluster.start(FEEDS, { leaseTtlMs: HOUR_MS });
  await cluster.settle();
  const joined = cluster.start(FEEDS, { leaseTtlMs: HOUR_MS });
  while (joined.leads.size === 0) await cluster.clock.advance(100);
  await cluster.stop(joined);
  await cluster.clock.advance(STANDBY_MS + 500);
  expect(await cluster.allLed()).toEqual([...FEEDS].sort());
  await cluster.stopAll();
});

describe('all feeds are led by the processes that live, evenly', () => {
  it('when the database fails over and loses that feeds were taken', async () => {
    const cluster = new LeaseCluster();
    await cluster.startShared(1);
    const failOver = cluster.snapshot();
    await cluster.startShared(1);
    failOver();
    await expectEvenShares(cluster);
  });

  it('when the database fails over and loses all that was ever taken', async () => {
    const cluster = new LeaseCluster();
    const failOver = cluster.snapshot();
    await cluster.startShared(3);
    failOver();
    await expectEvenShares(cluster);
  });

  it('when the database fails over and loses that feeds were released by a process that has stopped', async () => {
    const { cluster, third } = await shared();
    const failOver = cluster.snapshot();
    await cluster.stop(third);
    failOver();
    await cluster.clock.advance(TTL_MS + STANDBY_MS + ROUND_MS + STANDBY_MS);
    expect(await cluster.allLed()).toEqual([...FEEDS].sort());
    await expectEvenShares(cluster);
  });

  it('when the database is restored from a backup of other processes', async () => {
    const { cluster, first, second, third } = await shared();
    const restore = cluster.snapshot();
    cluster.kill(first);
    cluster.kill(second);
    cluster.kill(third);
    await cluster.startShared(2);
    restore();
    await expectEvenShares(cluster);
  });

  it('when the answers to several takes are lost', async () => {
    const cluster = new LeaseCluster();
    const first = cluster.start();
    cluster.faultsOf(first).lostTakes = 5;
    await cluster.clock.advance(2 * ROUND_MS);
    expect(await counts(cluster)).toEqual([FEEDS.length]);
    cluster.start();
    await expectEvenShares(cluster);
  });

  it('when releases of surplus feeds fail for a while', async () => {
    const cluster = new LeaseCluster();
    const [first] = (await cluster.startShared(1)) as [LeaseProcess];
    cluster.faultsOf(first).cannotRelease = true;
    cluster.start();
    await cluster.clock.advance(60_000);
    expect((await cluster.allLed()).length).toBeGreaterThanOrEqual(FEEDS.length - 1);
    cluster.faultsOf(first).cannotRelease = false;
    await expectEvenShares(cluster);
  });

  it('when a process is killed just before the clock of the database is set back', async () => {
    const { cluster, first } = await shared();
    cluster.kill(first);
    cluster.databaseAheadMs = -HOUR_MS;
    await cluster.clock.advance(TTL_MS + 3 * STANDBY_MS + ROUND_MS);
    expect(await cluster.allLed()).toEqual([...FEEDS].sort());
    await cluster.clock.advance(2 * HOUR_MS); // its row is alive again for the time to live
    await expectEvenShares(cluster);
  });

  it('when a process was paused: the others have taken its feeds, and it is a standby until they give some back', async () => {
    const { cluster, first } = await shared();
    const thaw = first.freeze();
    await cluster.clock.advance(TTL_MS + STANDBY_MS + 2 * ROUND_MS);
    expect(await counts(cluster)).toEqual([0, 6, 6]);
    thaw();
    await cluster.clock.advance(ROUND_MS);
    expect(first.leads.size).toBe((await cluster.led()).get(first)?.length);
    await expectEvenShares(cluster);
  });

  it('when a process was cut off from the database: the others have taken its feeds', async () => {
    const { cluster, first } = await shared();
    cluster.faultsOf(first).isCutOff = true;
    await cluster.clock.advance(TTL_MS + STANDBY_MS + 2 * ROUND_MS);
    expect(await counts(cluster)).toEqual([0, 6, 6]);
    expect(first.leads.size).toBe(4); // it cannot know, and its commits are fenced
    cluster.faultsOf(first).isCutOff = false;
    await cluster.clock.advance(READ_MS);
    expect(first.leads.size).toBe((await cluster.led()).get(first)?.length);
    await expectEvenShares(cluster);
  });

  it('when a command raises the epochs of all feeds, as an erasure does', async () => {
    const { cluster, epochs } = await shared();
    for (const feed of FEEDS) cluster.home.rewind(feed, null);
    await cluster.clock.advance(READ_MS + 1_000);
    expect(await counts(cluster)).toEqual([4, 4, 4]);
    expect(cluster.epochs()).toEqual(epochs.map((epoch) => epoch + 2));
    await expectEvenShares(cluster);
  });

  it('when the only one of them cannot renew its lease: it keeps its feeds', async () => {
    const cluster = new LeaseCluster();
    const [only] = (await cluster.startShared(1)) as [LeaseProcess];
    const epochs = cluster.epochs();
    cluster.faultsOf(only).cannotRenew = true;
    await cluster.settle();
    expect(only.leads.size).toBe(FEEDS.length);
    expect(cluster.epochs()).toEqual(epochs);
    cluster.faultsOf(only).cannotRenew = false;
    await expectEvenShares(cluster);
  });

  it('when one of them could not renew its lease for a while', async () => {
    const { cluster, first } = await shared();
    cluster.faultsOf(first).cannotRenew = true;
    await cluster.clock.advance(TTL_MS + STANDBY_MS + 2 * ROUND_MS);
    expect(await counts(cluster)).toEqual([0, 6, 6]);
    cluster.faultsOf(first).cannotRenew = false;
    await expectEvenShares(cluster);
  });

  it('when all of them could not renew their leases for a while', async () => {
    const { cluster } = await shared();
    for (const process of cluster.processes) cluster.faultsOf(process).cannotRenew = true;
    await cluster.settle();
    for (const process of cluster.processes) cluster.faultsOf(process).cannotRenew = false;
    await expectEvenShares(cluster);
  });
});

it('feeds do not change processes again and again while no process can renew its lease', async () => {
  const { cluster, epochs } = await shared();
  for (const process of cluster.processes) cluster.faultsOf(process).cannotRenew = true;
  await cluster.clock.advance(HOUR_MS);
  const taken = cluster.epochs().map((epoch, index) => epoch - (epochs[index] as number));
  expect(Math.max(...taken)).toBeLessThanOrEqual(3);
  await cluster.stopAll();
});

describe('a feed that its process no longer follows', () => {
  /** Processes that follow feeds in one database. */
  const setUp = () => {
    const clock = new VirtualClock();
    const store = new ModelStore(clock.monotonic);
    const start = (holder: string, feeds: readonly string[]) => {
      const process = processLease({ clock, store, holder, ttlMs: TTL_MS });
      const shared = { clock, store, service: new ModelService(), process };
      const { leases } = engineContext(shared);
      void process.keep(new AbortController().signal);
      return feeds.map((name) => {
        const stop = new AbortController();
        void syncFeed(engineContext({ ...shared, leases, identity: { name } }), stop.signal);
        return stop;
      });
    };
    return { clock, store, start };
  };

  it('is led by another one, even if its release failed', async () => {
    const { clock, store, start } = setUp();
    const [removed] = start('first', ['removed', 'kept']);
    await clock.advance(TTL_MS);
    const releaseLease = store.releaseLease.bind(store);
    store.releaseLease = () => Promise.reject(new Error('the connection was cut'));
    removed?.abort();
    await clock.advance(1_000);
    store.releaseLease = releaseLease;
    start('second', ['removed']);
    await clock.advance(10 * 60_000);
    expect(store.feeds.get('removed')).toMatchObject({ holder: 'second' });
  });

  it('is led by another one, even if the answer to its take was lost when it stopped', async () => {
    const { clock, store, start } = setUp();
    const acquireLease = store.acquireLease.bind(store);
    let removed: AbortController | undefined;
    store.acquireLease = async (feed, holder) => {
      const lease = await acquireLease(feed, holder);
      if (feed.name !== 'removed' || holder !== 'first') return lease;
      removed?.abort();
      throw new StoreFailure('connection');
    };
    [removed] = start('first', ['removed', 'kept']);
    await clock.advance(TTL_MS);
    start('second', ['removed']);
    await clock.advance(10 * 60_000);
    expect(store.feeds.get('removed')).toMatchObject({ holder: 'second' });
  });
});

it('an outage costs no more statements when a process leads many feeds', async () => {
  const cluster = new LeaseCluster();
  await cluster.startShared(1);
  let statements = 0;
  cluster.home.readFeeds = async () => {
    statements += 1;
    throw new StoreFailure('connection');
  };
  await cluster.clock.advance(60_000);
  expect(statements).toBeLessThan(60);
  await cluster.stopAll();
});

describe('a schema that one process cannot use', () => {
  it('is left to the others, and feeds of other schemas stay where they are', async () => {
    const cluster = new LeaseCluster(1, SCHEMA_FOR_TWO);
    const [first] = (await cluster.startShared(2)) as [LeaseProcess];
    const [own = ''] = (await cluster.led()).get(first) ?? [];
    const schema = SCHEMA_FOR_TWO(own);
    cluster.faultsOf(first).unreadable.add(schema);
    await cluster.clock.advance(2 * TTL_MS + READ_MS);
    const led = await cluster.led();
    expect((led.get(first) ?? []).map(SCHEMA_FOR_TWO)).not.toContain(schema);
    expect(await cluster.allLed()).toEqual([...FEEDS].sort());
    cluster.faultsOf(first).unreadable.delete(schema);
    await expectAllLed(cluster);
  });

  it('is led by it again when it is the only process, and can use it again', async () => {
    const cluster = new LeaseCluster(1, SCHEMA_FOR_TWO);
    const [only] = (await cluster.startShared(1)) as [LeaseProcess];
    const schema = SCHEMA_FOR_TWO('feed-0');
    cluster.faultsOf(only).unreadable.add(schema);
    await cluster.clock.advance(5 * TTL_MS);
    expect(await cluster.allLed()).toHaveLength(FEEDS.length - 2);
    cluster.faultsOf(only).unreadable.delete(schema);
    await cluster.clock.advance(READ_MS + TTL_MS);
    expect(await cluster.allLed()).toHaveLength(FEEDS.length);
    await cluster.stopAll();
  });
});

describe('the engine', () => {
  it('continues at once when an erasure or a rewind has raised the epoch', async () => {
    const clock = new VirtualClock();
    const store = new ModelStore(clock.monotonic);
    const process = processLease({ clock, store });
    const stop = new AbortController();
    const context = engineContext({ clock, store, process, service: new ModelService(), pollIntervalMs: 1_000 });
    const running = Promise.all([syncFeed(context, stop.signal), process.keep(stop.signal)]);
    await clock.advance(60_000);
    store.rewind('default', null);
    await clock.advance(2_000);
    expect(store.feeds.get('default')).toMatchObject({ holder: 'test-process', epoch: 3 });
    const committedAt = store.feeds.get('default')?.lastCommitAt;
    expect(committedAt).toBeGreaterThan(60_000);
    stop.abort();
    await clock.run(running);
  });

  it('loses no lease to a commit that locks the feed for longer than the time to live', async () => {
    const clock = new VirtualClock();
    const store = new ModelStore(clock.monotonic);
    const commitPage = store.commitPage.bind(store);
    store.commitPage = async (commit) => {
      await clock.pause(60_000);
      return commitPage(commit);
    };
    const start = (holder: string) => {
      const process = processLease({ clock, store, holder, ttlMs: TTL_MS });
      const stop = new AbortController();
      const context = engineContext({ clock, store, process, service: new ModelService() });
      return { stop, running: Promise.all([syncFeed(context, stop.signal), process.keep(stop.signal)]) };
    };
    const leader = start('leader');
    await clock.advance(1_000);
    const standby = start('standby');
    await clock.advance(10 * 60_000);
    expect(store.feeds.get('default')).toMatchObject({ holder: 'leader', epoch: 1 });
    expect(await store.readStatus('default')).toMatchObject({ leaseHolder: 'leader', lastCommitAt: expect.any(Date) });
    for (const { stop } of [leader, standby]) stop.abort();
    await clock.run(Promise.all([leader.running, standby.running]));
  });
});

describe('processes and a database that are disturbed at random', () => {
  const seeds = Array.from({ length: cases(12, 300) }, (_, n) => n + 1);

  it.each(seeds)('lead all feeds and keep them once nothing happens any more (seed %i)', async (seed) => {
    const cluster = new LeaseCluster(seed, seed % 2 === 0 ? SCHEMA_FOR_TWO : undefined);
    const choices = choicesFrom(seed);
    await cluster.startShared(3);
    const repairs: (() => void)[] = [];
    for (let step = choices.between(4, 16); step > 0; step -= 1) {
      repairs.push(disturb(cluster, choices));
      await cluster.clock.advance(choices.between(0, 3 * TTL_MS));
      if (choices.chance(0.5)) repairs.splice(choices.between(0, repairs.length - 1), 1)[0]?.();
    }
    for (const repair of repairs) repair();
    while (cluster.processes.length > 3) cluster.kill(choices.pick(cluster.processes));
    while (cluster.processes.length < 2) cluster.start();
    await cluster.settle(); // rows of the future come to life once more
    await expectAllLed(cluster);
  });
});

/** Does something to the processes or the database. Returns a function that ends it. */
function disturb(cluster: LeaseCluster, { pick, between }: Choices): () => void {
  const process = cluster.processes.length === 0 ? cluster.start() : pick(cluster.processes);
  const faults = cluster.faultsOf(process);
  const disturbances: readonly (() => () => void)[] = [
    () => process.freeze(),
    () => {
      faults.isCutOff = true;
      return () => {
        faults.isCutOff = false;
      };
    },
    () => {
      faults.cannotRenew = true;
      return () => {
        faults.cannotRenew = false;
      };
    },
    () => {
      faults.cannotRelease = true;
      return () => {
        faults.cannotRelease = false;
      };
    },
    () => {
      faults.lostTakes += between(1, 5);
      return () => {};
    },
    () => {
      cluster.kill(process);
      return () => {};
    },
    () => {
      cluster.start();
      return () => {};
    },
    () => cluster.snapshot(),
    () => {
      cluster.home.processes.clear();
      return () => {};
    },
    () => {
      cluster.databaseAheadMs += between(-2, 2) * TTL_MS;
      return () => {};
    },
    () => {
      for (const feed of FEEDS) cluster.storeOf(feed).rewind(feed, null);
      return () => {};
    },
  ];
  return pick(disturbances)();
}
