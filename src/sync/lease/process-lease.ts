import type { Clock } from '../../core/clock.js';
import type { ProcessStore } from '../ports/index.js';
import { pauseUntilDue } from '../retry/backoff.js';
import { FeedShare } from './feed-share.js';
import { RepeatedStatements } from './repeated-statements.js';

/** Number of renewals within the time to live of a lease. One of them may fail. */
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

/** Called when other processes live than before, and when the clock of the database was set back. */
export type ProcessListener = (event: 'processes changed' | 'clock was set back') => void;

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
  /** Statements that are repeated after each renewal until they succeed. */
  readonly statements = new RepeatedStatements();
  readonly #listeners = new Set<ProcessListener>();
  /** Since when the feeds of a schema cannot be read. */
  readonly #unreadSince = new Map<string, number>();
  /** The first renewal; null before it and after it failed. */
  #joining: Promise<void> | null = null;
  #living: ReadonlyMap<string, number> = new Map();
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** No feed of another process is taken before. */
  #takesFrom = Number.NEGATIVE_INFINITY;
  /** Error of the last renewal; null if it succeeded. */
  #failure: unknown = null;

  constructor(private readonly parts: ProcessParts) {
    this.clock = parts.clock;
    this.holder = parts.holder;
    this.ttlMs = parts.ttlMs;
    this.share = new FeedShare(parts.ttlMs, parts.ttlMs / RENEWALS_PER_TTL);
  }

  /** Returns the time at which the lease expires unless it is renewed. */
  readonly aliveUntil = (): number => this.#renewedAt + this.ttlMs;

  listen(listener: ProcessListener): void {
    this.#listeners.add(listener);
  }

  unlisten(listener: ProcessListener): void {
    this.#listeners.delete(listener);
  }

  /** Waits for the first renewal. Rejects if it fails, and while the lease has expired because it cannot be renewed. */
  async join(): Promise<void> {
    if (this.#failure !== null && this.#hasJoined() && this.clock.monotonic() >= this.aliveUntil()) throw this.#failure;
    this.#joining ??= this.#join().catch((error: unknown) => {
      this.#joining = null;
      throw error;
    });
    await this.#joining;
  }

  /** Renews the lease until the signal aborts; then ends it, so that other processes need not wait. Never rejects. */
  async keep(signal: AbortSignal): Promise<void> {
    const { clock, store } = this.parts;
    for (let pauseMs = this.#intervalMs(); !signal.aborted; ) {
      await clock.sleep(pauseMs, signal);
      const begunAt = clock.monotonic();
      if (this.#hasJoined() && !signal.aborted) await this.#renew().then(this.statements.repeat, () => {});
      pauseMs = pauseUntilDue(this.#intervalMs(), clock.monotonic() - begunAt);
    }
    await this.#joining?.catch(() => {});
    if (this.#hasJoined()) await store.removeProcess(this.holder).catch(() => {});
  }

  /**
   * Reserves a feed in the share of this process; returns false if it is not allowed to take the feed now. After its own lease was lost it takes
   * none from others for the time to live: a failover, a pause or a jump of the clock may have ended the leases of all processes alike.
   */
  reserve(feed: string, storedHolder: string | null): boolean {
    const now = this.clock.monotonic();
    if (now >= this.aliveUntil()) return false; // others would take it from this process at once
    if (storedHolder === this.holder) {
      this.share.reserveOwn(feed);
      return true;
    }
    return (storedHolder === null || now >= this.#takesFrom) && this.share.reserve(feed, now, this.#takesFrom);
  }

  /**
   * Records whether the feeds of a schema could be read. If they cannot for the time to live, the process does not count as alive
   * there, so that another one takes them.
   */
  recordRead(schema: string, isRead: boolean): void {
    if (isRead) this.#unreadSince.delete(schema);
    else if (!this.#unreadSince.has(schema)) this.#unreadSince.set(schema, this.parts.clock.monotonic());
  }

  #hasJoined(): boolean {
    return this.#renewedAt > Number.NEGATIVE_INFINITY;
  }

  /** Time between two renewals, milliseconds. A process that leads all of its feeds may give some to another that has just joined. */
  #intervalMs(): number {
    const intervalMs = this.ttlMs / RENEWALS_PER_TTL;
    const isAlone = this.#living.size <= 1;
    return isAlone && this.share.leadsAll() ? intervalMs : Math.min(intervalMs, STANDBY_INTERVAL_MS);
  }

  /** Renews the lease for the first time, and ends those of dead predecessors: later, two containers might end each other's. */
  async #join(): Promise<void> {
    await this.parts.ready();
    await this.#renew();
    const dead = [...this.#living.keys()].filter((other) => other !== this.holder && this.parts.isDead(other));
    for (const predecessor of dead) await this.parts.store.removeProcess(predecessor);
    this.#setLiving(new Map([...this.#living].filter(([other]) => !dead.includes(other))));
  }

  async #renew(): Promise<void> {
    const { clock, store, holder, ttlMs } = this.parts;
    const askedAt = clock.monotonic();
    try {
      // During an outage no schema could be read: that says nothing about one of them.
      if (this.#failure !== null) this.#unreadSince.clear();
      const given = { feeds: this.share.followed(), unusable: this.#unusable(askedAt), ttlMs };
      const { living, wasAlive, clockWasSetBack } = await store.renewProcess({ holder, ...given });
      this.#failure = null;
      if (!wasAlive && this.#hasJoined()) this.#takesFrom = askedAt + ttlMs;
      this.#renewedAt = askedAt;
      if (clockWasSetBack) for (const listener of this.#listeners) listener('clock was set back');
      this.#setLiving(living);
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #unusable(now: number): string[] {
    return [...this.#unreadSince].filter(([, since]) => now - since > this.ttlMs).map(([schema]) => schema);
  }

  #setLiving(living: ReadonlyMap<string, number>): void {
    this.#living = living;
    if (this.share.setProcesses(living, this.holder)) {
      for (const listener of this.#listeners) listener('processes changed');
    }
  }
}
