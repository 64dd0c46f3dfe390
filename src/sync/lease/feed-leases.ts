import { classifyError } from '../../core/errors.js';
import type { FeedIdentity, LeaseGrant, LeaseStore, StatusStore, StoredFeed } from '../ports/index.js';
import { pauseAfter, pauseUntilDue } from '../retry/backoff.js';
import { limitConcurrency } from '../waiting/limit-concurrency.js';
import { unlessAborted } from '../waiting/unless-aborted.js';
import { createWakeUp } from '../waiting/wake-up.js';
import type { ProcessLease, ProcessListener } from './process-lease.js';

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

/** The feeds that a process follows in a schema. It reads them at intervals, in one statement, for leaders and standbys alike. */
export class FeedLeases {
  readonly #followed = new Set<string>();
  /** Feeds that may name this process without its knowledge: the response to the last take has not arrived. */
  readonly #perhapsTaken = new Set<string>();
  readonly #wakeUp;
  readonly #listener: ProcessListener;
  readonly #limitTaking = limitConcurrency(TAKEN_AT_ONCE);
  #followsNone = new AbortController();
  #isReading = false;
  #next = upcomingRead();

  constructor(
    readonly process: ProcessLease,
    private readonly schema: LeaseSchema,
  ) {
    this.#wakeUp = createWakeUp(process.clock);
    this.#listener = (event) => {
      if (event === 'processes changed') this.readEarly();
      else void process.statements.run(() => schema.store.forgetFreshness(process.holder));
    };
  }

  /** Time between two reads while the process stands by for a feed, milliseconds. */
  get intervalMs(): number {
    return Math.min(this.process.ttlMs / 3, MAX_INTERVAL_MS);
  }

  /** Follows a feed: it counts towards the feeds that the process shares, and is read. */
  follow(feed: string): void {
    this.process.share.follow(feed);
    this.process.listen(this.#listener);
    this.#followed.add(feed);
    if (this.#followsNone.signal.aborted) this.#followsNone = new AbortController();
    if (!this.#isReading) this.#keepReading().catch(this.#fail);
  }

  unfollow(feed: string): void {
    this.process.share.unfollow(feed);
    this.#followed.delete(feed);
    if (this.#perhapsTaken.delete(feed)) void this.release(feed);
    if (this.#followed.size > 0) return;
    this.process.unlisten(this.#listener);
    this.#followsNone.abort();
  }

  /** Waits for a read that begins after this call. Resolves with null when the signal aborts; rejects only because of a bug. */
  nextRead(signal: AbortSignal): Promise<FeedsRead | null> {
    return unlessAborted(this.#next.read, signal);
  }

  /** Ends the pause before the next read, unless the last one failed. */
  readEarly(): void {
    this.#wakeUp.wake();
  }

  /**
   * Takes a feed. Resolves with null if that is not possible now: the process already leads its share of feeds, another process leads
   * this one, or a commit locks it. Also rejects when the signal aborts while it waits for its turn.
   */
  take(feed: FeedIdentity, storedHolder: string | null, signal: AbortSignal): Promise<LeaseGrant | null> {
    const { process, schema } = this;
    const take = async () => {
      if (!process.reserve(feed.name, storedHolder)) return null;
      let lease: LeaseGrant | null = null;
      try {
        this.#perhapsTaken.add(feed.name);
        lease = await schema.store.acquireLease(feed, process.holder);
        this.#perhapsTaken.delete(feed.name);
        return lease;
      } finally {
        if (lease === null) process.share.release(feed.name);
      }
    };
    return this.#limitTaking(take, { signal });
  }

  /** Gives a feed back, so that another process need not wait for the end of this one. Never rejects. */
  async release(feed: string): Promise<void> {
    const { share, holder } = this.process;
    share.release(feed);
    await this.process.statements.run(async () => {
      if (!share.leads(feed)) await this.schema.store.releaseLease({ feed, holder }); // else it was taken again meanwhile
    });
  }

  /** Reads until no feed is followed. */
  async #keepReading(): Promise<void> {
    const { clock } = this.process;
    this.#isReading = true;
    for (let [failures, pauseMs] = [0, 0]; this.#followed.size > 0; ) {
      // Yields even without a pause, so that feeds that begin at the same time share a read.
      await clock.sleep(pauseMs, this.#followsNone.signal);
      if (this.#followed.size === 0) break;
      const begunAt = clock.monotonic();
      // A feed that begins to wait during a read needs a newer one: it may have been taken or released meanwhile.
      const next = this.#next;
      this.#next = upcomingRead();
      next.resolve(this.#read(failures));
      const read = await next.read;
      failures = 'error' in read ? failures + 1 : 0;
      pauseMs = 'error' in read ? read.pauseMs : await this.#pause(begunAt);
    }
    this.process.recordRead(this.schema.name, true);
    this.#isReading = false;
  }

  /**
   * Waits until the next read is due, or somebody wants one early. Returns what is left to wait. While the process leads all feeds, it
   * only learns of requested passes.
   */
  async #pause(begunAt: number): Promise<number> {
    const { clock, share } = this.process;
    const isAtRest = share.leadsAll(this.#followed) && !share.exceedsShare();
    const dueInMs = pauseUntilDue(isAtRest ? MAX_INTERVAL_MS : this.intervalMs, clock.monotonic() - begunAt);
    const isEarly = await this.#wakeUp.sleep(dueInMs, this.#followsNone.signal);
    return isEarly ? Math.max(0, MIN_INTERVAL_MS - (clock.monotonic() - begunAt)) : 0;
  }

  async #read(failures: number): Promise<FeedsRead> {
    const { process, schema } = this;
    const askedAt = process.clock.monotonic();
    let isReady = false;
    try {
      await schema.ready(this.#followsNone.signal);
      isReady = true;
      await process.join();
      const feeds = await schema.store.readFeeds([...this.#followed]);
      process.recordRead(schema.name, true);
      // As of the response: the read may have waited for a lock, and the holder's as well.
      const answeredAt = process.clock.monotonic();
      for (const [feed, { status }] of feeds) process.share.recordRead(feed, status.leaseHolder === null, answeredAt);
      return { askedAt, feeds };
    } catch (error) {
      process.recordRead(schema.name, false);
      const failure = classifyError(error);
      const pauseMs = Math.min(pauseAfter(failures + 1, failure, process.clock.random()), this.intervalMs);
      return { error, pauseMs, isUsable: isReady || failure.kind !== 'schema' };
    }
  }

  readonly #fail = (bug: unknown): void => {
    this.#isReading = false;
    this.#next.reject(bug);
    this.#next = upcomingRead();
  };
}

/** A read that has not begun. */
function upcomingRead() {
  let resolve: (read: Promise<FeedsRead>) => void = () => {};
  let reject: (bug: unknown) => void = () => {};
  const read = new Promise<FeedsRead>((...settle) => {
    [resolve, reject] = settle;
  });
  read.catch(() => {}); // perhaps no feed waits for it
  return { read, resolve, reject };
}
