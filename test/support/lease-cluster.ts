import type { FeedStore, ProcessRenewal, ProcessStore } from '../../src/sync/ports/index.js';
import { StoreFailure } from '../simulation/model-failure.js';
import { ModelStore } from '../simulation/model-store.js';
import { LeaseProcess, type LeaseProcessOptions } from './lease-process.js';
import { nextTick, VirtualClock } from './virtual-clock.js';

export const TTL_MS = 9_000;
/** Maximum time between two renewals, and between two reads of the feeds, by a standby. */
export const [STANDBY_MS, ROUND_MS] = [1_500, TTL_MS / 3];
export const FEEDS: readonly string[] = Array.from({ length: 12 }, (_, n) => `feed-${n}`);

export type SchemaOf = (feed: string) => string;

export const ONE_SCHEMA: SchemaOf = () => 'scanfeed';
export const SCHEMA_EACH: SchemaOf = (feed) => `schema-${feed}`;
export const SCHEMA_FOR_TWO: SchemaOf = (feed) => `schema-${Math.floor(FEEDS.indexOf(feed) / 2)}`;

/** What goes wrong between a process and its database. */
export interface ProcessFaults {
  /** All statements fail. */
  isCutOff: boolean;
  /** Only the renewals of its lease fail. */
  cannotRenew: boolean;
  /** Releases of feeds fail. */
  cannotRelease: boolean;
  /** The responses to the next takes are lost. */
  lostTakes: number;
  /** Schemas whose feeds it cannot read. */
  readonly unreadable: Set<string>;
}

/** Processes that follow feeds, and the database with their leases. */
export class LeaseCluster {
  readonly clock: VirtualClock;
  readonly processes: LeaseProcess[] = [];
  /** The schema of the settings of all processes. */
  readonly home: ModelStore;
  /** How far the clock of the database is ahead, milliseconds. */
  databaseAheadMs = 0;
  readonly #stores: ReadonlyMap<string, ModelStore>;
  readonly #faults = new Map<LeaseProcess, ProcessFaults>();
  #started = 0;

  constructor(
    seed = 1,
    private readonly schemaOf = ONE_SCHEMA,
  ) {
    this.clock = new VirtualClock(seed, nextTick);
    const { monotonic } = this.clock;
    const now = () => monotonic() + this.databaseAheadMs;
    this.home = new ModelStore(now, { monotonic });
    const storeIn = (schema: string) => {
      return [
        schema,
        schema === 'scanfeed' ? this.home : new ModelStore(now, { monotonic, schema }, this.home),
      ] as const;
    };
    this.#stores = new Map([...new Set(FEEDS.map(schemaOf))].map(storeIn));
  }

  storeOf(feed: string): ModelStore {
    return this.#stores.get(this.schemaOf(feed)) as ModelStore;
  }

  start(feeds: readonly string[] = FEEDS, options: Partial<LeaseProcessOptions> = {}): LeaseProcess {
    this.#started += 1;
    const faults = {
      isCutOff: false,
      cannotRenew: false,
      cannotRelease: false,
      lostTakes: 0,
      unreadable: new Set<string>(),
    };
    const process = new LeaseProcess(`process-${this.#started}`, {
      ...{ feeds, schemaOf: this.schemaOf, clock: this.clock, leaseTtlMs: TTL_MS },
      storeOf: (schema) => faultyFeeds(this.#stores.get(schema) as ModelStore, schema, faults),
      processes: faultyProcesses(this.home, faults),
      ...options,
    });
    this.processes.push(process);
    this.#faults.set(process, faults);
    return process;
  }

  /** Starts processes, and lets them share the feeds. */
  async startShared(count: number, feeds = FEEDS): Promise<readonly LeaseProcess[]> {
    const started = Array.from({ length: count }, () => this.start(feeds));
    await this.settle();
    return started;
  }

  faultsOf(process: LeaseProcess): ProcessFaults {
    return this.#faults.get(process) as ProcessFaults;
  }

  kill(process: LeaseProcess): void {
    this.#remove(process);
    process.kill();
  }

  async stop(process: LeaseProcess): Promise<void> {
    this.#remove(process);
    await this.clock.run(process.stop());
  }

  async stopAll(): Promise<void> {
    await this.clock.run(Promise.all(this.processes.map((process) => process.stop())));
  }

  /** Lets enough time pass for everything to come to rest. */
  settle(): Promise<void> {
    return this.clock.advance(300_000);
  }

  /**
   * Returns the feeds that each process leads: it believes so, its commits would be accepted, and other processes see it as the leader.
   */
  async led(): Promise<ReadonlyMap<LeaseProcess, readonly string[]>> {
    const led = new Map<LeaseProcess, readonly string[]>();
    for (const process of this.processes) {
      const feeds: string[] = [];
      for (const [feed, { epoch }] of process.leads) {
        const store = this.storeOf(feed);
        const { holder, epoch: stored } = store.feeds.get(feed) ?? {};
        const { leaseHolder } = await store.readStatus(feed);
        if (holder === process.name && leaseHolder === holder && stored === epoch) feeds.push(feed);
      }
      led.set(process, feeds.sort());
    }
    return led;
  }

  /** Returns the names of all feeds that are led. */
  async allLed(): Promise<readonly string[]> {
    return [...(await this.led()).values()].flat().sort();
  }

  epochs(): readonly number[] {
    return FEEDS.map((feed) => this.storeOf(feed).feeds.get(feed)?.epoch ?? 0);
  }

  /** Copies all data. Returns a function that restores it, like a failover that loses the commits since then. */
  snapshot(): () => void {
    const restores = [...new Set([this.home, ...this.#stores.values()])].map((store) => store.snapshot());
    return () => {
      for (const restore of restores) restore();
    };
  }

  #remove(process: LeaseProcess): void {
    this.processes.splice(this.processes.indexOf(process), 1);
  }
}

/** The feeds of a schema as a process reaches them. */
function faultyFeeds(store: ModelStore, schema: string, faults: ProcessFaults): FeedStore {
  const isAway = (method: string | symbol) =>
    faults.isCutOff ||
    (method === 'readFeeds' && faults.unreadable.has(schema)) ||
    (method === 'releaseLease' && faults.cannotRelease);
  return new Proxy(store as FeedStore, {
    get:
      (target, method) =>
      async (...args: unknown[]) => {
        if (isAway(method)) throw new StoreFailure('connection');
        const result = await Reflect.apply(Reflect.get(target, method) as never, target, args);
        if (method !== 'acquireLease' || faults.lostTakes === 0) return result;
        faults.lostTakes -= 1;
        throw new StoreFailure('connection');
      },
  });
}

function faultyProcesses(store: ProcessStore, faults: ProcessFaults): ProcessStore {
  const reached = (isRenewal: boolean) => {
    if (faults.isCutOff || (isRenewal && faults.cannotRenew)) throw new StoreFailure('connection');
  };
  return {
    renewProcess: async (renewal: ProcessRenewal) => {
      reached(true);
      return store.renewProcess(renewal);
    },
    removeProcess: async (holder: string) => {
      reached(false);
      return store.removeProcess(holder);
    },
  };
}
