import type { ReconcileSettings } from '../../src/sync/context.js';
import { followFeed } from '../../src/sync/loop.js';
import type { Clock, FeedStore } from '../../src/sync/ports.js';
import { engineContext } from '../support/engine.js';
import type { VirtualClock } from '../support/virtual-clock.js';
import { BrokenPromise, type CheckedStore } from './checked-store.js';
import { ModelTrouble } from './model-service.js';
import type { Choices } from './random-choices.js';
import type { SimulatedService } from './simulated-service.js';

const LEASE_TTL_MS = 30_000;

/** What may go wrong between a process and its database, each with its probability. */
export interface StoreFaults {
  /** The connection is cut, and the statement did not happen. */
  readonly lost: number;
  /** The connection is cut, and it did happen. */
  readonly unknown: number;
  /** The connection is cut, and it happens later, when nobody waits any more. */
  readonly straggler: number;
  /** The process stands still for longer than its lease, then goes on. */
  readonly pause: number;
}

/** One process of the daemon: the production engine, until it is killed. */
export class FaultyProcess {
  readonly #killed = new AbortController();
  readonly #stop = new AbortController();
  readonly ended: Promise<void>;

  constructor(
    name: string,
    private readonly clock: VirtualClock,
    private readonly choices: Choices,
    service: SimulatedService,
    private readonly store: CheckedStore,
    private readonly faults: () => StoreFaults,
    reconcile: ReconcileSettings,
  ) {
    const own: Clock = { ...this.#clockOfItsOwn() };
    const context = engineContext({
      clock: own,
      service: {
        readPage: (request, signal) => this.#alive(service.readPage(request, signal)),
        readRun: (scanId, options, signal) => this.#alive(service.readRun(scanId, options, signal)),
      },
      store: this.#faultyStore(),
      holder: name,
      leaseTtlMs: LEASE_TTL_MS,
      reconcile,
    });
    this.ended = followFeed(context, this.#stop.signal);
    this.ended.catch(() => {});
  }

  /** Ends it as SIGKILL does: nothing is given back, and nothing of it is heard of again. */
  kill(): void {
    this.#killed.abort();
  }

  /** Ends it as SIGTERM does. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }

  #clockOfItsOwn(): Clock {
    const { clock } = this;
    return {
      now: clock.now,
      monotonic: clock.monotonic,
      random: clock.random,
      sleep: (ms, signal) => this.#alive(clock.sleep(ms, AbortSignal.any([signal, this.#killed.signal]))),
    };
  }

  /** Whatever a killed process waits for never comes. */
  async #alive<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      if (this.#killed.signal.aborted) await new Promise<never>(() => {});
    }
  }

  #faultyStore(): FeedStore {
    const { store } = this;
    const through = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
      return (...args: A): Promise<R> => this.#alive(this.#perform(() => call.apply(store, args)));
    };
    return {
      acquireLease: through(store.acquireLease),
      renewLease: through(store.renewLease),
      releaseLease: through(store.releaseLease),
      readPosition: through(store.readPosition),
      readEarlierPositions: through(store.readEarlierPositions),
      movePosition: through(store.movePosition),
      readStatus: through(store.readStatus),
      findStored: through(store.findStored),
      commitPage: through(store.commitPage),
      commitResults: through(store.commitResults),
      readSweeps: through(store.readSweeps),
      beginSweep: through(store.beginSweep),
      commitSweep: through(store.commitSweep),
      duePending: through(store.duePending),
      postponePending: through(store.postponePending),
    };
  }

  async #perform<R>(call: () => Promise<R>): Promise<R> {
    const { choices } = this;
    const faults = this.faults();
    await this.#wait(choices.between(0, 20));
    if (choices.chance(faults.pause)) await this.#wait(LEASE_TTL_MS * choices.between(1, 3));
    if (this.#killed.signal.aborted && choices.chance(0.5)) return new Promise<never>(() => {});
    if (choices.chance(faults.lost)) throw new ModelTrouble('connection');
    if (choices.chance(faults.straggler)) {
      const late = choices.between(100, 20_000);
      void this.#wait(late).then(() => call().catch(keepQuiet));
      throw new ModelTrouble('connection');
    }
    const result = await call();
    if (choices.chance(faults.unknown)) throw new ModelTrouble('connection');
    return result;
  }

  #wait(ms: number): Promise<void> {
    return this.clock.sleep(ms, new AbortController().signal);
  }
}

/** A straggler's broken promise is kept by the store; nobody waits for its result. */
function keepQuiet(error: unknown): void {
  if (!(error instanceof BrokenPromise) && !(error instanceof ModelTrouble)) throw error;
}
