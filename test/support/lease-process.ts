import type { Clock } from '../../src/core/clock.js';
import type { FeedContext, LeaderContext } from '../../src/sync/context.js';
import { keepLease } from '../../src/sync/lease/keep-lease.js';
import { createLeaseRounds, type LeaseRounds } from '../../src/sync/lease/lease-rounds.js';
import { createProcessLeases } from '../../src/sync/lease/process-leases.js';
import { takeLease } from '../../src/sync/lease/take-lease.js';
import { createUnfinishedWork } from '../../src/sync/lease/unfinished-work.js';
import type { FeedStore } from '../../src/sync/ports/index.js';
import { createDatabaseRecovery } from '../../src/sync/retry/database-recovery.js';
import { linkedSignal } from '../../src/sync/waiting/linked-signal.js';
import { ModelService } from '../simulation/model-service.js';
import { engineContext, usableSchema } from './engine.js';

export interface LeaseProcessOptions {
  readonly feeds: readonly string[];
  /** Returns the schema of a feed. */
  readonly schemaOf?: (feed: string) => string;
  /** Returns the store of a schema. */
  readonly storeOf: (schema: string) => FeedStore;
  readonly clock: Clock;
  readonly leaseTtlMs: number;
}

/** A process that takes and keeps leases, and does nothing with them. */
export class LeaseProcess {
  /** Many feeds listen to it. */
  readonly #stop = linkedSignal();
  readonly #following: Promise<unknown>;
  #killed = false;

  readonly feeds: readonly string[];

  constructor(
    readonly name: string,
    { feeds, schemaOf = () => 'scanfeed', storeOf, clock, leaseTtlMs }: LeaseProcessOptions,
  ) {
    this.feeds = feeds;
    // The waits of a killed process never end.
    const lives = async <T>(work: Promise<T>): Promise<T> => {
      const result = await work;
      return this.#killed ? new Promise<never>(() => {}) : result;
    };
    const { now, monotonic, random } = clock;
    const service = new ModelService();
    const sleep: Clock['sleep'] = (ms, signal) => lives(clock.sleep(ms, signal));
    const process = { holder: name, isDead: () => false, leaseTtlMs };
    const leases = createProcessLeases({ clock: { now, monotonic, random, sleep }, ...process });
    const rounds = new Map<string, LeaseRounds>();
    const roundsOf = (schema: string) => {
      const opened = rounds.get(schema) ?? createLeaseRounds(leases, usableSchema(stored(schema), schema));
      rounds.set(schema, opened);
      return opened;
    };
    const stored = (schema: string) =>
      new Proxy(storeOf(schema), {
        get:
          (target, method) =>
          (...args: unknown[]) =>
            this.#killed
              ? lives(Promise.resolve())
              : lives(Reflect.apply(Reflect.get(target, method) as never, target, args) as Promise<unknown>),
      });
    const follow = (feed: string) => {
      const schema = schemaOf(feed);
      const parts = { service, store: storeOf(schema), clock, leases: roundsOf(schema) };
      return this.#follow(feed, engineContext({ ...parts, identity: { name: feed } }), parts.leases);
    };
    this.#following = Promise.all(feeds.map(follow));
  }

  /** Like SIGKILL: it releases nothing. */
  kill(): void {
    this.#killed = true;
  }

  /** Like SIGTERM. */
  stop(): Promise<unknown> {
    this.#stop.abort();
    return this.#following;
  }

  async #follow(feed: string, defaults: FeedContext, leases: LeaseRounds): Promise<void> {
    const { signal } = this.#stop;
    const context = {
      ...defaults,
      recovery: createDatabaseRecovery(defaults.clock),
    } as unknown as LeaderContext;
    leases.follow(feed);
    while (!signal.aborted) {
      const lease = await takeLease(context, signal, false);
      if (lease === null) break;
      await keepLease(lease, context, createUnfinishedWork(), signal);
      await leases.release(lease);
    }
    await leases.unfollow(feed);
  }
}
