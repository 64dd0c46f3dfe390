import { describe, expect, it } from 'vitest';
import { FeedLeases, type FeedsRead, type LeaseSchema } from '../../../src/sync/lease/feed-leases.js';
import type { FeedIdentity, LeaseGrant } from '../../../src/sync/ports/index.js';
import { ModelFailure, StoreFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { processLease, usableSchema } from '../../support/engine.js';
import { testFeed } from '../../support/store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const INTERVAL_MS = TTL_MS / 3;
const STANDBY_MS = 1_500;
const FEEDS = ['a', 'b', 'c'];

/** A signal that does not abort. */
const never = () => new AbortController().signal;

interface SetupOptions extends Partial<Pick<LeaseSchema, 'ready'>> {
  /** Replaces methods of the store. */
  readonly over?: Partial<ModelStore>;
  readonly ttlMs?: number;
}

/** The feeds of a process in a schema, and the statements that it sends, with their times. */
function setUp({ over = {}, ttlMs = TTL_MS, ...schema }: SetupOptions = {}) {
  const clock = new VirtualClock();
  const store = new ModelStore(clock.monotonic);
  const calls: string[] = [];
  const counted = new Proxy(store, {
    get: (target, name) => {
      const method = (over[name as keyof ModelStore] ?? Reflect.get(target, name)) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        if (name !== 'readStatus') calls.push(`${clock.monotonic()} ${String(name)}`);
        return method.apply(target, args);
      };
    },
  });
  const process = processLease({ clock, store, holder: 'process', ttlMs });
  const stop = new AbortController();
  void process.keep(stop.signal);
  const leases = new FeedLeases(process, { ...usableSchema(counted), ...schema });
  const read = (feed: string, immediately = true, signal = never()) => {
    leases.follow(feed);
    if (immediately) leases.readEarly();
    return leases.nextRead(signal);
  };
  /** Follows the feeds, and waits until nothing more happens at their start. */
  const begin = async (...feeds: readonly string[]) => {
    await clock.run(Promise.all(feeds.map((feed) => read(feed))));
    await clock.advance(1_000);
    calls.length = 0;
  };
  const take = async (name: string, storedHolder: string | null = null): Promise<LeaseGrant> => {
    const lease = await leases.take(testFeed({ name }), storedHolder, never());
    if (lease === null) throw new Error('the feed was not taken');
    return lease;
  };
  const live = (holder: string, feeds = 1, ofTtlMs = TTL_MS) =>
    store.renewProcess({ holder, feeds, unusable: [], ttlMs: ofTtlMs });
  const reads = () => calls.filter((call) => call.endsWith('readFeeds')).map((call) => Number.parseFloat(call));
  return { clock, store, calls, reads, process, leases, read, begin, take, live };
}

/** Returns what a read found; fails if it failed. */
function found(read: FeedsRead | null) {
  if (read === null || 'error' in read) throw new Error('nothing was read');
  return read;
}

describe('a read', () => {
  it('happens at once when feeds have just started, in one statement for all', async () => {
    const { clock, calls, read } = setUp();
    const all = await clock.run(Promise.all(FEEDS.map((feed) => read(feed))));
    expect(calls).toEqual(['0 readFeeds']);
    for (const each of all) {
      expect(each).toBe(all[0]);
      expect([...found(each).feeds.keys()]).toEqual(FEEDS);
    }
  });

  it('follows the first renewal of the lease of the process', async () => {
    const alive: string[][] = [];
    const { clock, store, read } = setUp({
      over: {
        readFeeds: async (feeds) => {
          alive.push([...store.processes.keys()]);
          return ModelStore.prototype.readFeeds.call(store, feeds);
        },
      },
    });
    await clock.run(read('a'));
    expect(alive).toEqual([['process']]);
  });

  it.each([
    [30_000, 10_000],
    [9_000, 3_000],
    [3_600_000, 10_000],
  ])('happens at intervals for all feeds when the time to live is %i ms: each %i ms', async (ttlMs, intervalMs) => {
    const { clock, leases, reads, begin } = setUp({ ttlMs });
    await begin(...FEEDS);
    const times: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await clock.run(Promise.all(FEEDS.map(() => leases.nextRead(never()))));
      times.push(clock.monotonic());
    }
    const [first = 0] = times;
    expect(first).toBeLessThanOrEqual(1_000 + intervalMs);
    expect(times).toEqual([first, first + intervalMs, first + 2 * intervalMs]);
    expect(reads()).toEqual(times);
  });

  it('happens each 10 s when the process leads all feeds, however short its lease is', async () => {
    const { clock, begin, take, reads } = setUp({ ttlMs: 3_000 });
    await begin(...FEEDS);
    await Promise.all(FEEDS.map((feed) => take(feed)));
    await clock.advance(60_000);
    const times = reads();
    expect(times.slice(2).map((time, index) => time - (times[index + 1] as number))).toEqual(Array(4).fill(10_000));
  });

  it('happens early when another process drops out', async () => {
    const { clock, store, reads, begin, live } = setUp();
    await live('other');
    await begin('a');
    await store.removeProcess('other');
    await clock.advance(STANDBY_MS);
    expect(reads()).toHaveLength(1);
  });

  it('happens early when another feed begins, in one statement for all', async () => {
    const { clock, calls, begin, read } = setUp();
    await begin('a');
    const [again, started] = [read('a', false), read('b')];
    const [ofFirst, ofSecond] = await clock.run(Promise.all([again, started]));
    expect(calls).toEqual(['1000 readFeeds']);
    expect(ofFirst).toBe(ofSecond);
    expect([...found(ofSecond).feeds.keys()]).toEqual(['a', 'b']);
  });

  it('is no more frequent than each 100 ms when many feeds begin one after another', async () => {
    const { clock, reads, begin, read } = setUp();
    await begin('first');
    for (let feed = 0; feed < 200; feed += 1) {
      void read(`feed-${feed}`);
      await clock.advance(5);
    }
    const times = reads();
    expect(times.length).toBeLessThanOrEqual(11);
    for (const [index, time] of times.entries()) {
      if (index > 0) expect(time - (times[index - 1] as number)).toBeGreaterThanOrEqual(100);
    }
  });

  it('is followed by another one at once when a feed begins during it', async () => {
    let isSlow = false;
    const { clock, store, begin, read, calls } = setUp({
      over: {
        readFeeds: async (feeds) => {
          if (isSlow) await clock.pause(500);
          return ModelStore.prototype.readFeeds.call(store, feeds);
        },
      },
    });
    await begin('a');
    isSlow = true;
    void read('b');
    await clock.advance(200);
    expect(found(await clock.run(read('c'))).feeds.has('c')).toBe(true);
    expect(calls).toEqual(['1000 readFeeds', '1500 readFeeds']);
  });

  it('is not the answer for a feed that was taken during it', async () => {
    let isSlow = false;
    const { clock, store, begin, read, leases, take } = setUp({
      over: {
        readFeeds: async (feeds) => {
          const stored = await ModelStore.prototype.readFeeds.call(store, feeds);
          if (isSlow) await clock.pause(500);
          return stored;
        },
      },
    });
    await begin('a');
    isSlow = true;
    const other = read('b');
    await clock.advance(200);
    const { epoch } = await clock.run(take('a'));
    leases.readEarly();
    const next = leases.nextRead(never());
    await clock.run(other);
    expect(found(await clock.run(next)).feeds.get('a')).toMatchObject({ holder: 'process', epoch });
  });

  it('ends with null at once when the feed stops, and the reads end with the last one', async () => {
    const { clock, leases, reads, begin, read } = setUp();
    await begin('a', 'b');
    const [first, last] = [new AbortController(), new AbortController()];
    const [ofFirst, ofLast] = [read('a', false, first.signal), read('b', false, last.signal)];
    first.abort();
    leases.unfollow('a');
    expect(await ofFirst).toBeNull();
    expect(found(await clock.run(ofLast)).feeds.has('a')).toBe(false);
    const again = read('b', false, last.signal);
    last.abort();
    leases.unfollow('b');
    expect(await again).toBeNull();
    expect(await leases.nextRead(last.signal)).toBeNull();
    const before = reads().length;
    await clock.advance(10 * INTERVAL_MS);
    expect(reads()).toHaveLength(before);
  });

  it('happens again when a feed is followed after the last one has stopped', async () => {
    const { clock, leases, begin, read, calls } = setUp();
    await begin('a');
    leases.unfollow('a');
    expect(found(await clock.run(read('b'))).feeds.has('b')).toBe(true);
    leases.unfollow('b');
    await clock.advance(INTERVAL_MS);
    calls.length = 0;
    expect(found(await clock.run(read('a'))).feeds.has('a')).toBe(true);
    expect(calls).toHaveLength(1);
  });

  it('does not wait for a schema after its last feed has stopped', async () => {
    let isWaiting = false;
    const { clock, leases, read } = setUp({
      ready: (signal) =>
        new Promise<void>((_, reject) => {
          isWaiting = true;
          signal.addEventListener('abort', () => {
            isWaiting = false;
            reject(signal.reason);
          });
        }),
    });
    const [first, last] = [new AbortController(), new AbortController()];
    const both = [read('a', true, first.signal), read('b', true, last.signal)];
    await clock.advance(1_000);
    first.abort();
    leases.unfollow('a');
    expect(await both[0]).toBeNull();
    expect(isWaiting).toBe(true);
    last.abort();
    leases.unfollow('b');
    expect(await both[1]).toBeNull();
    expect(isWaiting).toBe(false);
  });
});

describe('a read that fails', () => {
  /** Reads fail from the start. */
  const failing = (options: Omit<SetupOptions, 'over'> = {}) => {
    const database = { isAway: true };
    const parts = setUp({
      ...options,
      over: {
        readFeeds: async (feeds) => {
          if (database.isAway) throw new StoreFailure('connection');
          return ModelStore.prototype.readFeeds.call(parts.store, feeds);
        },
      },
    });
    return { ...parts, database };
  };

  it('reaches every feed with the pause until the next one', async () => {
    const { clock, database, calls, read } = failing();
    const failed = await clock.run(Promise.all(FEEDS.map((feed) => read(feed))));
    const { pauseMs } = failed[0] as { readonly pauseMs: number };
    expect(pauseMs).toBeGreaterThan(0);
    expect(pauseMs).toBeLessThanOrEqual(500);
    expect(failed).toMatchObject(FEEDS.map(() => ({ error: expect.any(StoreFailure), pauseMs })));
    database.isAway = false;
    await clock.run(read('a', false));
    expect(calls[0]).toBe('0 readFeeds');
  });

  it('is not repeated before its pause is over when another feed begins', async () => {
    const { clock, reads, read } = failing();
    clock.random = () => 0.9;
    const { pauseMs } = (await clock.run(read('a'))) as { readonly pauseMs: number };
    void read('b');
    await clock.advance(pauseMs - 1);
    expect(reads()).toEqual([0]);
  });

  it('is repeated after pauses that grow up to the interval', async () => {
    const { clock, database, leases, reads, read } = failing({ ttlMs: 9_000 });
    await clock.run(read('a'));
    await clock.advance(600_000);
    const times = reads();
    const pauses = times.slice(1).map((time, index) => time - (times[index] as number));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(3_000);
    expect(times.length).toBeLessThan(600);
    database.isAway = false;
    const again = await clock.run(leases.nextRead(never()));
    expect(found(again).feeds.has('a')).toBe(true);
  });

  it('fails while the process cannot renew its lease for the first time', async () => {
    const { clock, store, calls, read } = setUp();
    const renewProcess = store.renewProcess.bind(store);
    store.renewProcess = async () => {
      throw new StoreFailure('connection');
    };
    expect(await clock.run(read('a'))).toMatchObject({ error: { kind: 'connection' } });
    expect(calls).toEqual([]);
    store.renewProcess = renewProcess;
    expect(found(await clock.run(read('a', false))).feeds.has('a')).toBe(true);
  });

  it('fails while the schema is not usable', async () => {
    let isUsable = false;
    const { clock, calls, read } = setUp({
      ready: async () => {
        if (!isUsable) throw new StoreFailure('schema', 'hold');
      },
    });
    expect(await clock.run(read('a'))).toMatchObject({ error: { kind: 'schema' } });
    expect(calls).toEqual([]);
    isUsable = true;
    expect(found(await clock.run(read('a', false))).feeds.has('a')).toBe(true);
  });

  it('fails while the process cannot renew its lease, once that has expired', async () => {
    const { clock, store, leases, begin } = setUp();
    await begin('a');
    const renewProcess = store.renewProcess.bind(store);
    store.renewProcess = async () => {
      throw new StoreFailure('pool_exhausted');
    };
    await clock.advance(TTL_MS - 1_000);
    expect(await clock.run(leases.nextRead(never()))).toMatchObject({ error: { kind: 'pool_exhausted' } });
    store.renewProcess = renewProcess;
    await clock.advance(STANDBY_MS);
    expect(found(await clock.run(leases.nextRead(never()))).feeds.has('a')).toBe(true);
  });

  it('ends the lease of the process in this schema, and only in it, when all fail for the time to live', async () => {
    const { clock, store, database, read } = failing();
    await clock.run(read('a'));
    await clock.advance(2 * TTL_MS);
    expect(store.processes.get('process')).toMatchObject({ unusable: ['scanfeed'] });
    database.isAway = false;
    await clock.advance(TTL_MS);
    expect(store.processes.get('process')).toMatchObject({ unusable: [] });
  });

  it('does not end the lease in a schema whose last feed has stopped', async () => {
    const { clock, store, leases, read } = failing();
    await clock.run(read('a'));
    leases.unfollow('a');
    await clock.advance(3 * TTL_MS);
    expect(store.processes.get('process')).toMatchObject({ unusable: [] });
  });

  it('rejects for every feed when that is a bug, and a feed that begins later is read again', async () => {
    const { clock, read, leases } = failing();
    const { random } = clock;
    clock.random = () => {
      throw new Error('a bug');
    };
    const all = FEEDS.map((feed) => read(feed));
    await expect(clock.run(Promise.any(all))).rejects.toMatchObject({ errors: FEEDS.map(() => new Error('a bug')) });
    clock.random = random;
    leases.unfollow('a');
    expect(await clock.run(read('a'))).toMatchObject({ error: { kind: 'connection' } });
  });
});

describe('the taking of feeds', () => {
  it('takes a bounded number at once', async () => {
    const running = new Set<FeedIdentity>();
    let most = 0;
    const { clock, begin, leases } = setUp({
      over: {
        acquireLease: async (feed) => {
          running.add(feed);
          most = Math.max(most, running.size);
          await clock.pause(10);
          running.delete(feed);
          return null;
        },
      },
    });
    const feeds = Array.from({ length: 20 }, (_, n) => testFeed({ name: `feed-${n}` }));
    await begin(...feeds.map(({ name }) => name));
    await clock.run(Promise.all(feeds.map((feed) => leases.take(feed, null, never()))));
    expect(most).toBe(8);
  });

  it('sends no statement for feeds beyond the share', async () => {
    const { calls, live, begin, take, leases } = setUp();
    await live('other', 2, 3_600_000);
    await begin('a', 'b');
    await take('a');
    expect(await leases.take(testFeed({ name: 'b' }), null, never())).toBeNull();
    expect(calls).toEqual(['1000 acquireLease']);
  });

  it.each<[string, () => Promise<null>]>([
    ['another session has locked it', async () => null],
    ['the statement fails', () => Promise.reject(new ModelFailure('connection'))],
  ])('does not count a feed that was not taken: %s', async (_, acquireLease) => {
    const { live, begin, take, leases } = setUp({
      over: {
        acquireLease(feed, holder) {
          return feed.name === 'a' ? acquireLease() : ModelStore.prototype.acquireLease.call(this, feed, holder);
        },
      },
    });
    await live('other', 2, 3_600_000);
    await begin('a', 'b');
    await leases.take(testFeed({ name: 'a' }), null, never()).catch(() => {});
    expect(await take('b')).toMatchObject({ feed: 'b', epoch: 1 });
  });

  it('keeps the right to take a feed beyond the share when a lock prevents it', async () => {
    let isLocked = true;
    const { clock, live, begin, take, leases } = setUp({
      over: {
        async acquireLease(feed, holder) {
          return isLocked && feed.name === 'b' ? null : ModelStore.prototype.acquireLease.call(this, feed, holder);
        },
      },
    });
    await live('other', 2, 3_600_000);
    await begin('a', 'b');
    await take('a');
    const takeB = () => leases.take(testFeed({ name: 'b' }), null, never());
    expect(await takeB()).toBeNull();
    await clock.advance(TTL_MS + INTERVAL_MS);
    expect(await takeB()).toBeNull();
    isLocked = false;
    expect(await takeB()).toMatchObject({ feed: 'b' });
  });

  it('takes feeds that already name the process, beyond its share', async () => {
    const { store, live, begin, take } = setUp();
    await live('other', 3, 3_600_000);
    await begin(...FEEDS);
    for (const name of FEEDS) await store.acquireLease(testFeed({ name }), 'process');
    expect(await Promise.all(FEEDS.map((feed) => take(feed, 'process')))).toMatchObject(
      FEEDS.map(() => ({ epoch: 2 })),
    );
  });

  it('rejects when the feed stops while it waits for its turn', async () => {
    const { clock, begin, leases } = setUp({ over: { acquireLease: () => clock.pause(1_000).then(() => null) } });
    const feeds = Array.from({ length: 9 }, (_, n) => testFeed({ name: `feed-${n}` }));
    await begin(...feeds.map(({ name }) => name));
    const stop = new AbortController();
    const takes = feeds.map((feed) => leases.take(feed, null, stop.signal));
    stop.abort(new Error('stopped'));
    await expect(takes[8]).rejects.toThrow('stopped');
    expect(await clock.run(Promise.all(takes.slice(0, 8)))).toEqual(Array(8).fill(null));
  });
});

describe('a lease', () => {
  it('is free for other processes at once when it was released, and no longer counts', async () => {
    const { store, live, begin, take, leases } = setUp();
    await live('other', 2, 3_600_000);
    await begin('a', 'b');
    await leases.release((await take('a')).feed);
    expect(store.feeds.get('a')).toMatchObject({ holder: null });
    expect(await take('b')).toMatchObject({ feed: 'b' });
  });

  it('is released by one statement at a time, however long that takes', async () => {
    let sent = 0;
    const { clock, begin, take, leases } = setUp({
      over: {
        releaseLease: async () => {
          sent += 1;
          await clock.pause(10_000);
          throw new ModelFailure('connection');
        },
      },
    });
    await begin('a');
    void leases.release((await clock.run(take('a'))).feed);
    await clock.advance(9_000);
    expect(sent).toBe(1);
    await clock.advance(3_000);
    expect(sent).toBe(2);
  });

  it('no longer counts when the statement that releases it fails', async () => {
    const { live, begin, take, leases } = setUp({
      over: { releaseLease: () => Promise.reject(new ModelFailure('connection')) },
    });
    await live('other', 2, 3_600_000);
    await begin('a', 'b');
    await leases.release((await take('a')).feed);
    expect(await take('b')).toMatchObject({ feed: 'b' });
  });
});

it('the freshness of the feeds that a process leads is forgotten when the clock of the database was set back', async () => {
  const { clock, store, calls, leases, begin, take } = setUp();
  const setClockBack = async () => {
    const row = store.processes.get('process');
    if (row !== undefined) store.processes.set('process', { ...row, renewedAt: clock.monotonic() + 3_600_000 });
    await clock.advance(2 * STANDBY_MS);
  };
  await begin(...FEEDS);
  await take('a');
  await store.acquireLease(testFeed({ name: 'b' }), 'other');
  for (const name of ['a', 'b']) Object.assign(store.feeds.get(name) as object, { completeAsOf: 1 });
  await setClockBack();
  expect(['a', 'b'].map((name) => store.feeds.get(name)?.completeAsOf)).toEqual([null, 1]);
  for (const feed of FEEDS) leases.unfollow(feed);
  calls.length = 0;
  await setClockBack();
  expect(calls).toEqual([]); // the process no longer uses the schema
});
