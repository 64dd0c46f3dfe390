import { describe, expect, it } from 'vitest';
import { shareOf } from '../../../src/sync/lease/feed-share.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { linkedSignal } from '../../../src/sync/waiting/linked-signal.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type Choices, choicesFrom } from '../../simulation/random-choices.js';
import { engineContext } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { LeaseProcess } from '../../support/lease-process.js';
import { cases } from '../../support/thorough.js';
import { nextTick, VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 9_000;
const QUIET_MS = 300_000;
const FEEDS = Array.from({ length: 12 }, (_, n) => `feed-${n}`);

type SchemaOf = (feed: string) => string;

const ONE_SCHEMA: SchemaOf = () => 'scanfeed';
const SCHEMA_EACH: SchemaOf = (feed) => `schema-${feed}`;
const SCHEMA_FOR_TWO: SchemaOf = (feed) => `schema-${Math.floor(FEEDS.indexOf(feed) / 2)}`;

/** Processes that join, leave and die at random, and the leases in their database. */
class Cluster {
  readonly clock: VirtualClock;
  readonly processes: LeaseProcess[] = [];
  readonly #stores: ReadonlyMap<string, ModelStore>;
  #started = 0;

  constructor(
    seed: number,
    private readonly schemaOf = ONE_SCHEMA,
  ) {
    this.clock = new VirtualClock(seed, nextTick);
    const storeIn = (schema: string) => [schema, new ModelStore(this.clock.monotonic, { leaseTtlMs: TTL_MS })] as const;
    this.#stores = new Map([...new Set(FEEDS.map(schemaOf))].map(storeIn));
  }

  storeOf(schema: string): ModelStore {
    return this.#stores.get(schema) as ModelStore;
  }

  start(feeds: readonly string[] = FEEDS): LeaseProcess {
    this.#started += 1;
    const process = new LeaseProcess(`process-${this.#started}`, {
      ...{ feeds, schemaOf: this.schemaOf, storeOf: (schema) => this.storeOf(schema), clock: this.clock },
      leaseTtlMs: TTL_MS,
    });
    this.processes.push(process);
    return process;
  }

  async end(process: LeaseProcess, isKilled: boolean): Promise<void> {
    this.processes.splice(this.processes.indexOf(process), 1);
    if (isKilled) process.kill();
    else await this.clock.run(process.stop());
  }

  async change({ chance, pick, shuffled }: Choices & { shuffled(feeds: readonly string[]): readonly string[] }) {
    if (this.processes.length < 2 || (this.processes.length < 4 && chance(0.5))) this.start(shuffled(FEEDS));
    else await this.end(pick(this.processes), chance(0.5));
  }

  /** Returns the feeds that each live process leads. */
  led(): ReadonlyMap<string, readonly string[]> {
    const now = this.clock.monotonic();
    const isLedBy = (feed: string, name: string) => {
      const row = this.storeOf(this.schemaOf(feed)).feeds.get(feed);
      return row?.holder === name && row.expiresAt > now;
    };
    return new Map(this.processes.map(({ name }) => [name, FEEDS.filter((feed) => isLedBy(feed, name))]));
  }

  epochs(): readonly number[] {
    return [...this.#stores.values()].flatMap(({ feeds }) => [...feeds.values()].map(({ epoch }) => epoch));
  }

  /** Returns the names of the announced processes in each schema. */
  announced(): readonly (readonly string[])[] {
    return [...this.#stores.values()].map(({ processes }) => [...processes.keys()]);
  }

  stopAll() {
    return this.clock.run(Promise.all(this.processes.map((process) => process.stop())));
  }
}

describe.each([
  ['one schema', ONE_SCHEMA],
  ['a schema each', SCHEMA_EACH],
  ['a schema for two', SCHEMA_FOR_TWO],
])('processes that join, leave and die at random, whose feeds have %s', (_, schemaOf) => {
  const seeds = Array.from({ length: cases(10, 100) }, (_, n) => n + 1);

  it.each(seeds)('share their feeds evenly and then keep them (seed %i)', async (seed) => {
    const cluster = new Cluster(seed, schemaOf);
    const choices = choicesFrom(seed);
    for (let step = choices.between(3, 12); step > 0; step -= 1) {
      await cluster.change({ ...choices, shuffled: () => FEEDS });
      await cluster.clock.advance(choices.between(0, 4 * TTL_MS));
    }
    await cluster.clock.advance(QUIET_MS);
    const led = [...cluster.led().values()];
    expect(led.flat().sort()).toEqual([...FEEDS].sort());
    for (const feeds of led) expect(feeds.length).toBeLessThanOrEqual(shareOf(FEEDS.length, led.length));
    const epochs = cluster.epochs();
    await cluster.clock.advance(QUIET_MS);
    expect(cluster.epochs()).toEqual(epochs);
    await cluster.stopAll();
    expect(cluster.announced().flat()).not.toContain(cluster.processes[0]?.name);
  });

  it.each(seeds)('lead every feed and then keep it when each follows other feeds (seed %i)', async (seed) => {
    const cluster = new Cluster(seed, schemaOf);
    const choices = choicesFrom(seed);
    const shuffled = () => FEEDS.filter(() => choices.chance(0.6));
    for (let step = choices.between(3, 12); step > 0; step -= 1) {
      await cluster.change({ ...choices, shuffled });
      await cluster.clock.advance(choices.between(0, 4 * TTL_MS));
    }
    await cluster.clock.advance(QUIET_MS);
    const followed = new Set(cluster.processes.flatMap(({ feeds }) => feeds));
    expect([...cluster.led().values()].flat().sort()).toEqual([...followed].sort());
    const epochs = cluster.epochs();
    await cluster.clock.advance(QUIET_MS);
    expect(cluster.epochs()).toEqual(epochs);
    await cluster.stopAll();
  });
});

it.each([
  ['one schema', ONE_SCHEMA],
  ['a schema each', SCHEMA_EACH],
])(
  'a process leads all feeds, which have %s, within twice the time to live of a lease when the other one is killed',
  async (_, schemaOf) => {
    const cluster = new Cluster(1, schemaOf);
    const first = cluster.start();
    cluster.start();
    await cluster.clock.advance(QUIET_MS);
    expect([...cluster.led().values()].map(({ length }) => length)).toEqual([6, 6]);
    await cluster.end(first, true);
    await cluster.clock.advance(2 * TTL_MS);
    expect([...cluster.led().values()].flat()).toHaveLength(FEEDS.length);
    await cluster.stopAll();
  },
);

it('a process leads all feeds within two rounds when the other one stops', async () => {
  const cluster = new Cluster(1);
  const first = cluster.start();
  cluster.start();
  await cluster.clock.advance(QUIET_MS);
  await cluster.end(first, false);
  await cluster.clock.advance((2 / 3) * TTL_MS);
  expect([...cluster.led().values()].flat()).toHaveLength(FEEDS.length);
  await cluster.stopAll();
});

it('the engine gives a feed back when another process starts, which then reads it from where it was', async () => {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.monotonic, { leaseTtlMs: TTL_MS });
  const service = new ModelService();
  service.feed.push(entryJson());
  const stop = linkedSignal();
  const start = (holder: string) => {
    const options = { clock, service, store, holder, leaseTtlMs: TTL_MS };
    const { leases } = engineContext(options);
    const follow = (name: string) => syncFeed(engineContext({ ...options, leases, identity: { name } }), stop.signal);
    return Promise.all(['one', 'two'].map(follow));
  };
  const holders = () => [...store.feeds.values()].map(({ holder, cursor }) => `${holder} ${cursor}`);
  const first = start('first');
  await clock.advance(TTL_MS);
  expect(holders()).toEqual(['first 1', 'first 1']);
  const second = start('second');
  await clock.advance(TTL_MS);
  service.feed.push(entryJson({ scanId: 'later' }));
  await clock.advance(TTL_MS);
  expect(holders()).toEqual(['first 2', 'second 2']);
  stop.abort();
  await clock.run(Promise.all([first, second]));
  expect(store.processes.size).toBe(0);
});
