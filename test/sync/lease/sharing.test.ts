import { describe, expect, it } from 'vitest';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { linkedSignal } from '../../../src/sync/waiting/linked-signal.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type Choices, choicesFrom } from '../../simulation/random-choices.js';
import { engineContext, processLease } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import {
  FEEDS,
  LeaseCluster,
  ONE_SCHEMA,
  ROUND_MS,
  SCHEMA_EACH,
  SCHEMA_FOR_TWO,
  STANDBY_MS,
  TTL_MS,
} from '../../support/lease-cluster.js';
import { cases } from '../../support/thorough.js';
import { VirtualClock } from '../../support/virtual-clock.js';

/** A process starts, stops or is killed. */
async function change(cluster: LeaseCluster, { chance, pick }: Choices, feedsOfNew: () => readonly string[]) {
  const { processes } = cluster;
  if (processes.length < 2 || (processes.length < 4 && chance(0.5))) cluster.start(feedsOfNew());
  else if (chance(0.5)) cluster.kill(pick(processes));
  else await cluster.stop(pick(processes));
}

/** Processes start, stop and die at random, and then nothing happens for minutes. */
async function disturbed(cluster: LeaseCluster, choices: Choices, feedsOfNew: () => readonly string[]) {
  for (let step = choices.between(3, 12); step > 0; step -= 1) {
    await change(cluster, choices, feedsOfNew);
    await cluster.clock.advance(choices.between(0, 4 * TTL_MS));
  }
  await cluster.settle();
}

describe.each([
  ['one schema', ONE_SCHEMA],
  ['a schema each', SCHEMA_EACH],
  ['a schema for two', SCHEMA_FOR_TWO],
])('processes that start, stop and die at random, whose feeds have %s', (_, schemaOf) => {
  const seeds = Array.from({ length: cases(10, 100) }, (_, n) => n + 1);

  it.each(seeds)('share their feeds evenly and then keep them (seed %i)', async (seed) => {
    const cluster = new LeaseCluster(seed, schemaOf);
    await disturbed(cluster, choicesFrom(seed), () => FEEDS);
    const led = [...(await cluster.led()).values()];
    expect(led.flat().sort()).toEqual([...FEEDS].sort());
    for (const feeds of led) expect(feeds.length).toBeLessThanOrEqual(Math.ceil(FEEDS.length / led.length));
    const epochs = cluster.epochs();
    await cluster.settle();
    expect(cluster.epochs()).toEqual(epochs);
    const names = cluster.processes.map(({ name }) => name);
    await cluster.stopAll();
    for (const name of names) expect(cluster.home.processes.has(name)).toBe(false);
  });

  it.each(seeds)('lead every feed and then keep it when each follows other feeds (seed %i)', async (seed) => {
    const cluster = new LeaseCluster(seed, schemaOf);
    const choices = choicesFrom(seed);
    await disturbed(cluster, choices, () => FEEDS.filter(() => choices.chance(0.6)));
    const followed = new Set(cluster.processes.flatMap(({ feeds }) => feeds));
    expect(await cluster.allLed()).toEqual([...followed].sort());
    const epochs = cluster.epochs();
    await cluster.settle();
    expect(cluster.epochs()).toEqual(epochs);
    await cluster.stopAll();
  });
});

describe.each([
  ['one schema', ONE_SCHEMA],
  ['a schema each', SCHEMA_EACH],
])('processes whose feeds have %s', (_, schemaOf) => {
  it('share them evenly when a second one starts', async () => {
    const cluster = new LeaseCluster(1, schemaOf);
    await cluster.startShared(1);
    expect(await counts(cluster)).toEqual([12]);
    await cluster.startShared(1);
    expect(await counts(cluster)).toEqual([6, 6]);
    await cluster.stopAll();
  });

  it('share them evenly when several start at the same time', async () => {
    const cluster = new LeaseCluster(1, schemaOf);
    await cluster.startShared(3);
    expect(await counts(cluster)).toEqual([4, 4, 4]);
    await cluster.stopAll();
  });

  it('take those of one that is killed within the time to live, a look and a round', async () => {
    const cluster = new LeaseCluster(1, schemaOf);
    const [first] = await cluster.startShared(2);
    if (first !== undefined) cluster.kill(first);
    await cluster.clock.advance(TTL_MS + STANDBY_MS + ROUND_MS);
    expect(await counts(cluster)).toEqual([12]);
    await cluster.stopAll();
  });

  it('take those of one that stops within 2 s', async () => {
    const cluster = new LeaseCluster(1, schemaOf);
    const [first] = await cluster.startShared(2);
    if (first !== undefined) await cluster.stop(first);
    await cluster.clock.advance(2_000);
    expect(await counts(cluster)).toEqual([12]);
    await cluster.stopAll();
  });

  it('take all of them within a second when the process before on the same host was killed', async () => {
    const cluster = new LeaseCluster(1, schemaOf);
    const [first] = await cluster.startShared(1);
    if (first !== undefined) cluster.kill(first);
    cluster.start(FEEDS, { isDead: (holder) => holder === first?.name });
    await cluster.clock.advance(500);
    expect(await counts(cluster)).toEqual([12]);
    await cluster.stopAll();
  });
});

/** Returns the number of feeds that each process leads. */
async function counts(cluster: LeaseCluster): Promise<readonly number[]> {
  return [...(await cluster.led()).values()].map(({ length }) => length);
}

describe('processes with different feeds', () => {
  it('lead all of theirs when they have none in common', async () => {
    const cluster = new LeaseCluster();
    for (const feeds of [FEEDS.slice(0, 11), FEEDS.slice(11)]) cluster.start(feeds);
    await cluster.clock.advance(TTL_MS + 2 * ROUND_MS);
    expect(await counts(cluster)).toEqual([11, 1]);
    await cluster.stopAll();
  });

  it('hardly delay each other: most feeds of the larger one are led at once', async () => {
    const cluster = new LeaseCluster();
    cluster.start(FEEDS.slice(11));
    await cluster.clock.advance(1_000);
    cluster.start(FEEDS.slice(0, 11));
    await cluster.clock.advance(1_000);
    expect(await counts(cluster)).toEqual([1, 11]);
    await cluster.stopAll();
  });

  it('share those that they have in common', async () => {
    const cluster = new LeaseCluster();
    cluster.start(FEEDS.slice(0, 8));
    cluster.start(FEEDS.slice(4));
    await cluster.settle();
    expect(await cluster.allLed()).toEqual([...FEEDS].sort());
    for (const count of await counts(cluster)) expect(count).toBeGreaterThanOrEqual(4);
    await cluster.stopAll();
  });
});

it('two processes that each look dead to the other do not take the feeds from each other again and again', async () => {
  const cluster = new LeaseCluster();
  const isDead = () => true;
  cluster.start(FEEDS, { isDead });
  await cluster.settle();
  cluster.start(FEEDS, { isDead });
  await cluster.settle();
  expect(await counts(cluster)).toEqual([6, 6]);
  const epochs = cluster.epochs();
  await cluster.settle();
  expect(cluster.epochs()).toEqual(epochs);
  await cluster.stopAll();
});

it('the engine gives a feed back when another process starts, which then reads it from where it was', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.monotonic);
  const service = new ModelService();
  service.feed.push(entryJson());
  const stop = linkedSignal();
  const start = (holder: string) => {
    const process = processLease({ clock, store, holder, ttlMs: TTL_MS });
    const options = { clock, service, store, process };
    const { leases } = engineContext(options);
    const follow = (name: string) => syncFeed(engineContext({ ...options, leases, identity: { name } }), stop.signal);
    const left = linkedSignal();
    return Promise.all([Promise.all(['one', 'two'].map(follow)).finally(left.abort), process.keep(left.signal)]);
  };
  const holders = () => [...store.feeds.values()].map(({ holder, cursor }) => `${holder} ${cursor}`);
  const first = start('first');
  await clock.advance(TTL_MS);
  expect(holders()).toEqual(['first 1', 'first 1']);
  const second = start('second');
  await clock.advance(2 * TTL_MS);
  service.feed.push(entryJson({ scanId: 'later' }));
  await clock.advance(TTL_MS);
  expect(holders()).toEqual(['first 2', 'second 2']);
  stop.abort();
  await clock.run(Promise.all([first, second]));
  expect(store.processes.size).toBe(0);
});
