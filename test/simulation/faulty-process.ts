import type { Clock } from '../../src/core/clock.js';
import { FeedLeases } from '../../src/sync/lease/feed-leases.js';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import type { FeedIdentity, FeedService, FeedStore, ProcessStore } from '../../src/sync/ports/index.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { engineContext, processLease, usableSchema } from '../support/engine.js';
import type { VirtualClock } from '../support/virtual-clock.js';
import type { CheckedStore } from './checked-store.js';
import type { Coverage, SimulationEvent } from './coverage.js';
import { ModelFailure, StoreFailure } from './model-failure.js';
import type { Choices } from './random-choices.js';
import type { SimulatedService } from './simulated-service.js';
import type { Faults, Traits } from './traits.js';

const LEASE_TTL_MS = 30_000;
export const POLL_INTERVAL_MS = 15_000;

/** State that the processes of one history share. */
export interface World {
  readonly clock: VirtualClock;
  readonly choices: Choices;
  /** By the names of their feeds. */
  readonly services: ReadonlyMap<string, SimulatedService>;
  readonly store: CheckedStore;
  readonly traits: Traits;
  readonly coverage: Coverage;
  /** The current faults. */
  faults: Faults;
  /** Whether the database is unreachable. */
  databaseUnavailable: boolean;
  /** Virtual time until which a process or statement may be frozen, or a late statement pending. */
  disturbedUntil: number;
  /** Number of times that the database has failed over and lost its last commits. */
  failovers: number;
}

/** Errors of statements that were not executed, as the storage classifies them. */
const STATEMENT_FAILURES = [
  new StoreFailure('connection'),
  new StoreFailure('deadlock'),
  new StoreFailure('lock_timeout'),
  new StoreFailure('disk_full'),
  new StoreFailure('read_only'),
  new StoreFailure('authentication', 'hold'),
  new StoreFailure('schema', 'hold'),
];
const CUT = new StoreFailure('connection');

/** A process of the daemon that runs the production engine until it is killed. */
export class FaultyProcess {
  readonly #stop = new AbortController();
  readonly #following: Promise<unknown>;
  #killed = false;
  #frozenUntil = 0;

  /** @param onKilled called once, immediately */
  constructor(
    name: string,
    private readonly world: World,
    private readonly onKilled: () => void,
  ) {
    const { services, traits, choices } = world;
    const { markdown, pageSize, maxHeldPages, maxPageCommits, memoryBudget, reconcile } = traits;
    const [clock, store] = [this.#clock(), this.#store()];
    const process = processLease({ clock, store, holder: name, ttlMs: LEASE_TTL_MS });
    const shared = {
      ...{ clock, store, maxHeldPages, maxPageCommits, reconcile },
      leases: new FeedLeases(process, usableSchema(store)),
      pollIntervalMs: POLL_INTERVAL_MS,
      ...{ markdown, pageSize },
      budget: createMemoryBudget(memoryBudget),
    };
    const follow = (feed: string, service: SimulatedService) =>
      syncFeed(
        engineContext({ ...shared, service: this.#through(service), identity: identityOf(feed, traits, choices) }),
        this.#stop.signal,
      );
    const leaving = new AbortController();
    const followed = Promise.all([...services].map(([feed, service]) => follow(feed, service)));
    this.#following = Promise.all([followed.finally(() => leaving.abort()), process.keep(leaving.signal)]);
    this.#following.catch(() => {});
  }

  /** Ends the process like SIGKILL: it releases nothing and does nothing more. */
  kill(): void {
    if (this.#killed) return;
    this.#killed = true;
    this.onKilled();
  }

  /** Ends the process like SIGTERM. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }

  /** Wraps every wait of the engine, during which the process may be killed or frozen. */
  async #awaits<T>(work: Promise<T>): Promise<T> {
    const { choices, clock, faults } = this.world;
    if (choices.chance(faults.crash)) this.kill();
    if (this.#happens('freezes', faults.freeze)) {
      this.#frozenUntil = clock.monotonic() + this.#recordDisturbance(LEASE_TTL_MS * choices.between(1, 3));
    }
    try {
      return await work;
    } finally {
      if (this.#frozenUntil > clock.monotonic()) await clock.pause(this.#frozenUntil - clock.monotonic());
      // The waits of a killed process never end.
      if (this.#killed) await new Promise<never>(() => {});
    }
  }

  #through(service: SimulatedService): FeedService {
    return {
      readPage: (request, signal) => this.#awaits(service.readPage(request, signal)),
      readRun: (scanId, options, signal) => this.#awaits(service.readRun(scanId, options, signal)),
    };
  }

  #clock(): Clock {
    const { now, monotonic, random, sleep } = this.world.clock;
    return { now, monotonic, random, sleep: (ms, signal) => this.#awaits(sleep(ms, signal)) };
  }

  #store(): FeedStore & ProcessStore {
    const { store } = this.world;
    const through = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
      return (...args: A): Promise<R> => this.#awaits(this.#perform(() => call.apply(store, args)));
    };
    return {
      acquireLease: through(store.acquireLease),
      releaseLease: through(store.releaseLease),
      renewProcess: through(store.renewProcess),
      removeProcess: through(store.removeProcess),
      readPosition: through(store.readPosition),
      readEarlierPositions: through(store.readEarlierPositions),
      findDelivered: through(store.findDelivered),
      movePosition: through(store.movePosition),
      storeStuck: through(store.storeStuck),
      readStatus: through(store.readStatus),
      readFeeds: through(store.readFeeds),
      forgetFreshness: through(store.forgetFreshness),
      findStored: through(store.findStored),
      tryEntries: through(store.tryEntries),
      commitPage: through(store.commitPage),
      commitResults: through(store.commitResults),
      notYetQuarantined: through(store.notYetQuarantined),
      nextPass: through(store.nextPass),
      readLastPass: through(store.readLastPass),
      beginPass: through(store.beginPass),
      commitPass: through(store.commitPass),
      storePace: through(store.storePace),
      duePending: through(store.duePending),
      postponePending: through(store.postponePending),
    };
  }

  /** Executes a statement with the faults of the connection. */
  async #perform<R>(call: () => Promise<R>): Promise<R> {
    const { world } = this;
    const { choices, clock, failovers } = world;
    // A statement sent before a failover does not arrive at the new server.
    const arrive = async () => {
      if (world.failovers !== failovers) throw CUT;
      return call();
    };
    // Half of the statements are so fast that nothing else happens during them.
    if (choices.chance(0.5)) await clock.pause(choices.between(1, 20));
    if (this.#happens('slow statements', world.faults.slow)) {
      await clock.pause(this.#recordDisturbance(LEASE_TTL_MS * choices.between(1, 3)));
    }
    // The statement of a killed process may still arrive.
    if (this.#killed && choices.chance(0.5)) return new Promise<never>(() => {});
    if (world.databaseUnavailable) throw CUT;
    if (this.#happens('lost statements', world.faults.lost)) throw choices.pick(STATEMENT_FAILURES);
    if (this.#happens('late statements', world.faults.straggler)) {
      void clock
        .pause(this.#recordDisturbance(choices.between(100, 20_000)))
        .then(arrive)
        .catch(ignoreModelFailure);
      throw CUT;
    }
    const result = await arrive();
    if (this.#happens('cut statements', world.faults.unknown)) throw CUT;
    return result;
  }

  /** Records a disturbance that may outlast the faults. Returns its duration. */
  #recordDisturbance(ms: number): number {
    const { world } = this;
    world.disturbedUntil = Math.max(world.disturbedUntil, world.clock.monotonic() + ms);
    return ms;
  }

  #happens(event: SimulationEvent, probability: number): boolean {
    const happens = this.world.choices.chance(probability);
    if (happens) this.world.coverage[event] += 1;
    return happens;
  }
}

/** Ignores the result of a late statement. */
function ignoreModelFailure(error: unknown): void {
  if (!(error instanceof ModelFailure)) throw error;
}

/** Returns the settings of a process. They differ only in the start, which has an effect only once. */
function identityOf(name: string, { filters, starts }: Traits, choices: Choices): FeedIdentity {
  const start = choices.pick(starts);
  return { name, baseUrl: 'https://service.test/v1', filters, keepHistory: true, start };
}
