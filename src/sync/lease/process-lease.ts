import type { Clock } from '../../core/clock.js';
import type { ProcessStore } from '../ports/index.js';
import { pauseUntilDue } from '../retry/backoff.js';
import { FeedShare } from './feed-share.js';
import { RepeatedStatements } from './repeated-statements.js';

/** Number of renewals within the time to live of a lease. Two in a row may fail. */
const RENEWALS_PER_TTL = 3;
/**
 * Maximum time between two renewals of a process that is not alone or stands by for feeds, milliseconds: they wait for it to notice that
 * another ended.
 */
const STANDBY_INTERVAL_MS = 1_500;

export interface ProcessParts {
  readonly clock: Clock;
  /** Identifies this process among those that can lead a feed. */
  readonly holder: string;
  /** Returns whether a holder was a process of the same host that has exited. */
  readonly isDead: (holder: string) => boolean;
  /** SCANFEED_LEASE_TTL, milliseconds. */
  readonly ttlMs: number;
  readonly store: ProcessStore;
  /** Resolves once the schema of the processes is usable; rejects while it is not. */
  readonly ready: () => Promise<void>;
}

/** A schema with feeds that the process follows. */
export interface FollowedSchema {
  readonly name: string;
  /** Since when its feeds cannot be read, monotonic milliseconds; null: they can. */
  readonly unreadSince: number | null;
  /** Called when other processes live than before. */
  readEarly(): void;
  /** Called when the clock of the database was set back. */
  forgetFreshness(): void;
}

/**
 * The lease of this process, for all feeds that it leads. One statement renews it and returns the living processes. All times are
 * monotonic, milliseconds. The states of the lease:
 *
 * - **Joining**, until the first renewal has succeeded. `join` sends it. Reads of feeds wait for `join`, and fail if it does; `keep` waits.
 * - **Alive**, until the time to live after the last renewal. `keep` renews the lease. Feeds are taken only in this state.
 * - **Expired**, until a renewal succeeds. Reads fail if the last renewal did. The process keeps its feeds until another one takes them.
 *   If its row had expired too, it takes no feed of others for one time to live: a failover, a pause or a jump of the clock may have
 *   ended the leases of all processes.
 * - **Ended**, once all feeds are given back and the signal of `keep` aborts. `keep` waits for a `join` in progress, and deletes the row,
 *   so that other processes need not wait.
 */
export class ProcessLease {
  readonly clock: Clock;
  readonly holder: string;
  readonly ttlMs: number;
  readonly share: FeedShare;
  readonly schemas = new Set<FollowedSchema>();
  /** Statements that are repeated after each renewal until they succeed. */
  readonly statements = new RepeatedStatements();
  /** The first renewal; null before it and after it failed. */
  #joining: Promise<void> | null = null;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Error of the last renewal; null if it succeeded. */
  #failure: unknown = null;
  /** When a renewal failed last. */
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: ProcessParts) {
    const { clock, holder, ttlMs } = parts;
    this.clock = clock;
    this.holder = holder;
    this.ttlMs = ttlMs;
    this.share = new FeedShare(holder, ttlMs, ttlMs / RENEWALS_PER_TTL);
  }

  /** Returns the time at which the lease expires unless it is renewed. */
  readonly aliveUntil = (): number => this.#renewedAt + this.ttlMs;

  /** Waits for the first renewal. Rejects if it fails, and while the lease has expired because it cannot be renewed. */
  async join(): Promise<void> {
    this.#joining ??= this.#join().catch((error: unknown) => {
      this.#joining = null;
      throw error;
    });
    await this.#joining;
    if (this.#failure !== null && !this.#isAlive()) throw this.#failure;
  }

  /** Renews the lease until the signal aborts, and then ends it. Never rejects. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const begunAt = this.clock.monotonic();
      // The next renewal is the retry. Until it succeeds, `join` rejects with the error.
      if (this.#hasJoined()) await this.#renew().then(this.statements.repeat, () => {});
      await this.clock.sleep(pauseUntilDue(this.#intervalMs(), this.clock.monotonic() - begunAt), signal);
    }
    await this.#joining?.catch(() => {});
    if (this.#hasJoined()) await this.parts.store.removeProcess(this.holder).catch(() => {});
  }

  /** Reserves a feed in the share of this process; returns false if it is not allowed to take the feed now. */
  reserve(feed: string, storedHolder: string | null): boolean {
    // Others would take the feed at once from a process that is not alive.
    return this.#isAlive() && this.share.reserve(feed, storedHolder, this.clock.monotonic());
  }

  #hasJoined(): boolean {
    return this.#renewedAt > Number.NEGATIVE_INFINITY;
  }

  #isAlive(): boolean {
    return this.clock.monotonic() < this.aliveUntil();
  }

  /** Time between two renewals, milliseconds. A process that leads all of its feeds may give some to another that has just joined. */
  #intervalMs(): number {
    const intervalMs = this.ttlMs / RENEWALS_PER_TTL;
    return this.share.isAlone() && this.share.leadsAll() ? intervalMs : Math.min(intervalMs, STANDBY_INTERVAL_MS);
  }

  /** Renews the lease for the first time, and ends those of dead predecessors: later, two containers might end each other's. */
  async #join(): Promise<void> {
    const { ready, store, isDead } = this.parts;
    await ready();
    const living = await this.#renew();
    const dead = [...living.keys()].filter((other) => other !== this.holder && isDead(other));
    for (const predecessor of dead) await store.removeProcess(predecessor);
    if (dead.length > 0) await this.#renew();
  }

  /** Renews the lease. Returns the living processes. */
  async #renew(): Promise<ReadonlyMap<string, number>> {
    const { clock, store, holder, ttlMs } = this.parts;
    const askedAt = clock.monotonic();
    const given = { feeds: this.share.followed(), unusable: this.#unusable(askedAt), ttlMs };
    try {
      const { living, wasAlive, clockWasSetBack } = await store.renewProcess({ holder, ...given });
      this.#failure = null;
      if (!wasAlive && this.#hasJoined()) this.share.takesFrom = askedAt + ttlMs;
      this.#renewedAt = askedAt;
      if (clockWasSetBack) for (const schema of this.schemas) schema.forgetFreshness();
      if (this.share.setProcesses(living)) for (const schema of this.schemas) schema.readEarly();
      return living;
    } catch (error) {
      this.#failure = error;
      this.#failedAt = clock.monotonic();
      throw error;
    }
  }

  /**
   * Returns the schemas whose feeds could not be read for the time to live, although the lease could be renewed. The process does not
   * count as alive there, so that another one takes the feeds.
   */
  #unusable(now: number): string[] {
    const isUnusable = ({ unreadSince }: FollowedSchema) =>
      unreadSince !== null && now - Math.max(unreadSince, this.#failedAt) > this.ttlMs;
    return [...this.schemas].filter(isUnusable).map(({ name }) => name);
  }
}
