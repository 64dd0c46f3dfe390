import { classifyError } from '../../core/errors.js';
import type { FeedIdentity, LeaseGrant, LeaseStore, StatusStore, StoredFeed } from '../ports/index.js';
import { pauseAfter, pauseUntilDue } from '../retry/backoff.js';
import { limitConcurrency } from '../waiting/limit-concurrency.js';
import { unlessAborted } from '../waiting/unless-aborted.js';
import { createWakeUp } from '../waiting/wake-up.js';
import type { FollowedSchema, ProcessLease } from './process-lease.js';

/** Maximum time between two reads of a feed, milliseconds: a requested pass waits for one, and a lease may last an hour. */
const MAX_INTERVAL_MS = 10_000;
/** Minimum time between two reads, milliseconds: many feeds that begin or end one after another are read together. */
const MIN_INTERVAL_MS = 100;
/** Maximum number of feeds of a schema that are taken at once, so that other statements do not wait long for a connection. */
const TAKEN_AT_ONCE = 8;

/** A schema with feeds of this process. */
export interface LeaseSchema {
  readonly name: string;
  readonly store: LeaseStore & StatusStore;
  /** Aborts once the process stops or follows no feed of the schema any more. */
  readonly ended: AbortSignal;
  /** Resolves once the schema is usable; rejects while it is not. */
  ready(signal: AbortSignal): Promise<void>;
}

/** A read of all feeds that the process follows in a schema. */
export type FeedsRead =
  | {
      /** Monotonic time at which it began. */
      readonly askedAt: number;
      readonly feeds: ReadonlyMap<string, StoredFeed>;
    }
  | {
      readonly error: unknown;
      /** Until the next read, milliseconds. */
      readonly pauseMs: number;
      /** Whether this release can still use the schema, as far as is known. */
      readonly isUsable: boolean;
    };

/**
 * The feeds that a process follows in a schema. Leaders and standbys wait for reads, each of which is one statement for all of them. A
 * read begins once a feed waits for it, the previous one has ended, and the next one is due or was wanted early.
 */
export class FeedLeases implements FollowedSchema {
  readonly name: string;
  unreadSince: number | null = null;
  readonly #followed = new Set<string>();
  readonly #wakeUp;
  readonly #limitTaking = limitConcurrency(TAKEN_AT_ONCE);
  /** The read that has not begun; null: no feed waits for one. */
  #next: Promise<FeedsRead | null> | null = null;
  /** Resolves when the read that has begun last ends. */
  #last: Promise<unknown> = Promise.resolve();
  /** Monotonic times at which the next read is due, and before which it does not begin, even if it is wanted early. */
  #due = { at: 0, notBefore: 0 };
  /** Number of reads in a row that have failed. */
  #failures = 0;

  constructor(
    readonly process: ProcessLease,
    private readonly schema: LeaseSchema,
  ) {
    this.name = schema.name;
    this.#wakeUp = createWakeUp(process.clock);
  }

  /** Time between two reads while the process stands by for a feed, milliseconds. */
  get intervalMs(): number {
    return Math.min(this.process.ttlMs / 3, MAX_INTERVAL_MS);
  }

  /** Follows a feed: it counts towards the feeds that the process shares, and is read. */
  follow(feed: string): void {
    this.#followed.add(feed);
    this.process.share.follow(feed);
    this.process.schemas.add(this);
  }

  unfollow(feed: string): void {
    this.#followed.delete(feed);
    this.process.share.unfollow(feed);
    if (this.#followed.size === 0) this.process.schemas.delete(this);
  }

  /** Waits for a read that begins after this call. Resolves with null when the signal aborts; rejects only because of a bug. */
  nextRead(signal: AbortSignal): Promise<FeedsRead | null> {
    this.#next ??= this.#readWhenDue();
    return unlessAborted(this.#next, signal);
  }

  /** Ends the pause before the next read, unless the last one failed. */
  readEarly(): void {
    this.#wakeUp.wake();
  }

  forgetFreshness(): void {
    const { holder, statements } = this.process;
    void statements.run(() => this.schema.store.forgetFreshness(holder));
  }

  /**
   * Takes a feed. Resolves with null if that is not possible now: the process already leads its share of feeds, another process leads
   * this one, or a commit locks it. Also rejects when the signal aborts while it waits for its turn.
   */
  take(feed: FeedIdentity, storedHolder: string | null, signal: AbortSignal): Promise<LeaseGrant | null> {
    const { process, schema } = this;
    const take = async () => {
      if (!process.reserve(feed.name, storedHolder)) return null;
      try {
        const lease = await schema.store.acquireLease(feed, process.holder);
        if (lease === null) process.share.release(feed.name);
        return lease;
      } catch (error) {
        await this.release(feed.name); // only the response may have been lost
        throw error;
      }
    };
    return this.#limitTaking(take, { signal });
  }

  /** Gives a feed back, so that another process need not wait for the end of this one. Never rejects. */
  async release(feed: string): Promise<void> {
    const { share, holder, statements } = this.process;
    share.release(feed);
    await statements.run(async () => {
      if (!share.leads(feed)) await this.schema.store.releaseLease({ feed, holder }); // else it was taken again meanwhile
    });
  }

  async #readWhenDue(): Promise<FeedsRead | null> {
    const { clock } = this.process;
    const { ended } = this.schema;
    await this.#last;
    await this.#wakeUp.sleep(Math.max(0, this.#due.at - clock.monotonic()), ended);
    // Yields even without a pause, so that feeds that begin at the same time share a read.
    await clock.sleep(Math.max(0, this.#due.notBefore - clock.monotonic()), ended);
    // A feed that begins to wait during a read needs a newer one: it may have been taken or released meanwhile.
    this.#next = null;
    if (this.#followed.size === 0 || ended.aborted) return null;
    const read = this.#read();
    this.#last = read.catch(() => {});
    return read;
  }

  async #read(): Promise<FeedsRead> {
    const { process, schema } = this;
    const { clock, share } = process;
    const askedAt = clock.monotonic();
    let isReady = false;
    try {
      await schema.ready(schema.ended);
      isReady = true;
      await process.join();
      const feeds = await schema.store.readFeeds([...this.#followed]);
      // As of the response: the read may have waited for a lock, and the holder's as well.
      const answeredAt = clock.monotonic();
      for (const [feed, { status }] of feeds) share.recordRead(feed, status.leaseHolder === null, answeredAt);
      this.#failures = 0;
      this.unreadSince = null;
      const dueAt = answeredAt + pauseUntilDue(this.#nextIntervalMs(), answeredAt - askedAt);
      this.#due = { at: dueAt, notBefore: askedAt + MIN_INTERVAL_MS };
      return { askedAt, feeds };
    } catch (error) {
      const failedAt = clock.monotonic();
      this.#failures += 1;
      this.unreadSince ??= failedAt;
      const failure = classifyError(error);
      const pauseMs = Math.min(pauseAfter(this.#failures, failure, clock.random()), this.intervalMs);
      this.#due = { at: failedAt + pauseMs, notBefore: failedAt + pauseMs };
      return { error, pauseMs, isUsable: isReady || failure.kind !== 'schema' };
    }
  }

  /** While the process leads all feeds, a read only finds requested passes. */
  #nextIntervalMs(): number {
    const { share } = this.process;
    return share.leadsAll(this.#followed) && !share.exceedsShare() ? MAX_INTERVAL_MS : this.intervalMs;
  }
}
