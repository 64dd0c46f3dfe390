import type { Clock } from '../../src/core/clock.js';
import type { FeedContext, LeaderContext } from '../../src/sync/context.js';
import { FeedLeases } from '../../src/sync/lease/feed-leases.js';
import { keepLease } from '../../src/sync/lease/keep-lease.js';
import { takeLease } from '../../src/sync/lease/take-lease.js';
import { createUnfinishedWork } from '../../src/sync/lease/unfinished-work.js';
import type { FeedStore, LeaseGrant, ProcessStore } from '../../src/sync/ports/index.js';
import { createFailurePauses } from '../../src/sync/retry/failure-pauses.js';
import { linkedSignal } from '../../src/sync/waiting/linked-signal.js';
import { ModelService } from '../simulation/model-service.js';
import { engineContext, processLease, usableSchema } from './engine.js';

export interface LeaseProcessOptions {
  readonly feeds: readonly string[];
  /** Returns the schema of a feed. */
  readonly schemaOf?: (feed: string) => string;
  /** Returns the store of a schema. */
  readonly storeOf: (schema: string) => FeedStore;
  readonly processes: ProcessStore;
  /** Returns whether a holder was a process of the same host that has exited. */
  readonly isDead?: (holder: string) => boolean;
  readonly clock: Clock;
  readonly leaseTtlMs: number;
}

/** A process that takes and keeps leases, and does nothing with them. */
export class LeaseProcess {
  /** Many feeds listen to it. */
  readonly #stop = linkedSignal();
  readonly #following: Promise<unknown>;
  #killed = false;
  #frozen: Promise<void> | null = null;

  readonly feeds: readonly string[];
  /** The leases that it believes to hold, by their feeds. */
  readonly leads = new Map<string, LeaseGrant>();

  constructor(
    readonly name: string,
    {
      feeds,
      schemaOf = () => 'scanfeed',
      storeOf,
      processes,
      clock,
      leaseTtlMs,
      isDead = () => false,
    }: LeaseProcessOptions,
  ) {
    this.feeds = feeds;
    const lives = async <T>(work: Promise<T>): Promise<T> => {
      try {
        return await work;
      } finally {
        while (this.#frozen !== null) await this.#frozen;
        // The waits of a killed process never end.
        if (this.#killed) await new Promise<never>(() => {});
      }
    };
    const { now, monotonic, random } = clock;
    const service = new ModelService();
    const sleep: Clock['sleep'] = (ms, signal) => lives(clock.sleep(ms, signal));
    const leases = new Map<string, FeedLeases>();
    const leasesIn = (schema: string) => {
      const opened = leases.get(schema) ?? new FeedLeases(process, usableSchema(living(storeOf(schema)), schema));
      leases.set(schema, opened);
      return opened;
    };
    const living = <T extends object>(store: T) =>
      new Proxy(store, {
        get:
          (target, method) =>
          (...args: unknown[]) =>
            this.#killed
              ? lives(Promise.resolve())
              : lives(Reflect.apply(Reflect.get(target, method) as never, target, args) as Promise<unknown>),
      });
    const process = processLease({
      clock: { now, monotonic, random, sleep },
      ...{ store: living(processes), holder: name, isDead, ttlMs: leaseTtlMs },
    });
    const follow = (feed: string) => {
      const schema = schemaOf(feed);
      const parts = { service, store: storeOf(schema), clock, leases: leasesIn(schema) };
      return this.#follow(feed, engineContext({ ...parts, identity: { name: feed } }), parts.leases);
    };
    const leaving = new AbortController();
    const followed = Promise.all(feeds.map(follow)).finally(() => leaving.abort());
    this.#following = Promise.all([followed, process.keep(leaving.signal)]);
  }

  /** Like SIGKILL: it releases nothing. */
  kill(): void {
    this.#killed = true;
  }

  /** Like SIGSTOP; the returned function is SIGCONT. */
  freeze(): () => void {
    let thaw = () => {};
    this.#frozen = new Promise((resolve) => {
      thaw = resolve;
    });
    return () => {
      this.#frozen = null;
      thaw();
    };
  }

  /** Like SIGTERM. */
  stop(): Promise<unknown> {
    this.#stop.abort();
    return this.#following;
  }

  async #follow(feed: string, defaults: FeedContext, leases: FeedLeases): Promise<void> {
    const { signal } = this.#stop;
    const context = {
      ...defaults,
      recovery: createFailurePauses(defaults.clock, defaults.service),
    } as unknown as LeaderContext;
    leases.follow(feed);
    while (!signal.aborted) {
      const lease = await takeLease(context, signal, async () => {});
      if (lease === null) break;
      this.leads.set(feed, lease);
      await keepLease(lease, context, createUnfinishedWork(), signal);
      this.leads.delete(feed);
      await leases.release(feed);
    }
    leases.unfollow(feed);
  }
}
