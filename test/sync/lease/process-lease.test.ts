import { describe, expect, it } from 'vitest';
import type { ProcessParts } from '../../../src/sync/lease/process-lease.js';
import type { ProcessRenewal } from '../../../src/sync/ports/index.js';
import { StoreFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { processLease } from '../../support/engine.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const STANDBY_MS = 1_500;
const FEEDS = ['a', 'b', 'c', 'd'];

interface Renewal extends ProcessRenewal {
  /** Monotonic time at which the statement was sent. */
  readonly at: number;
}

/** A process with its database, and the statements that it sends. */
function setUp({ ttlMs = TTL_MS, ...parts }: Partial<ProcessParts> = {}) {
  const clock = new VirtualClock();
  const database = { aheadMs: 0, isAway: false, latencyMs: 0 };
  const store = new ModelStore(() => clock.monotonic() + database.aheadMs);
  const renewals: Renewal[] = [];
  const events: string[] = [];
  const reached = async () => {
    if (database.latencyMs > 0) await clock.pause(database.latencyMs);
    if (database.isAway) throw new StoreFailure('connection');
  };
  const process = processLease({
    ...{ clock, holder: 'self', ttlMs },
    store: {
      renewProcess: async (renewal) => {
        renewals.push({ ...renewal, at: clock.monotonic() });
        await reached();
        return store.renewProcess(renewal);
      },
      removeProcess: async (holder) => {
        await reached();
        return store.removeProcess(holder);
      },
    },
    ...parts,
  });
  process.listen((event) => events.push(event));
  process.share.follow('a'); // it stands by for it
  const stop = new AbortController();
  const kept = process.keep(stop.signal);
  /** Ends the process like SIGTERM. */
  const end = () => {
    stop.abort();
    return clock.run(kept);
  };
  const live = (holder: string, ofTtlMs = TTL_MS, feeds = 1) =>
    store.renewProcess({ holder, feeds, unusable: [], ttlMs: ofTtlMs });
  const isAlive = () => {
    const row = store.processes.get('self');
    const now = clock.monotonic() + database.aheadMs;
    return row !== undefined && row.renewedAt <= now && now <= row.expiresAt;
  };
  return { clock, database, store, renewals, events, process, end, live, isAlive };
}

/** Returns the differences between successive times. */
const apart = (times: readonly number[]) => times.slice(1).map((time, index) => time - (times[index] as number));

describe('a process', () => {
  it('renews its lease every third of the time to live while it is alone and leads all of its feeds', async () => {
    const { clock, process, renewals } = setUp();
    await process.join();
    expect(process.reserve('a', null)).toBe(true);
    await clock.advance(2 * TTL_MS);
    expect(apart(renewals.slice(1).map(({ at }) => at))).toEqual(Array(5).fill(TTL_MS / 3));
  });

  it('renews it every 1.5 s while it stands by for a feed', async () => {
    const { clock, process, renewals } = setUp();
    await process.join();
    await clock.advance(TTL_MS);
    expect(renewals.map(({ at }) => at)).toEqual(renewals.map((_, index) => index * STANDBY_MS));
  });

  it('renews it every 1.5 s while another process lives, even if it leads all of its feeds', async () => {
    const { clock, process, renewals, live } = setUp();
    await process.join();
    expect(process.reserve('a', null)).toBe(true);
    await clock.advance(TTL_MS);
    await live('other', 3_600_000);
    await clock.advance(TTL_MS);
    expect(apart(renewals.slice(-5).map(({ at }) => at))).toEqual(Array(4).fill(STANDBY_MS));
  });

  it.each([3_000, 5_000, 3_600_000])('is always alive when the time to live is %i ms', async (ttlMs) => {
    const { clock, process, isAlive } = setUp({ ttlMs });
    await process.join();
    for (let step = 0; step < 100; step += 1) {
      await clock.advance(ttlMs / 7);
      expect(isAlive()).toBe(true);
      expect(process.aliveUntil()).toBeGreaterThan(clock.monotonic());
    }
  });

  it('pauses for half of the interval when a statement takes longer than that', async () => {
    const { clock, database, process, renewals } = setUp();
    database.latencyMs = 5_000;
    await clock.run(process.join());
    await clock.advance(TTL_MS);
    expect(new Set(apart(renewals.slice(1).map(({ at }) => at)))).toEqual(new Set([5_000 + STANDBY_MS / 2]));
  });

  it('tells the number of its feeds with each renewal', async () => {
    const { clock, process, store } = setUp();
    for (const feed of ['a', 'b']) process.share.follow(feed);
    await process.join();
    expect(store.processes.get('self')).toMatchObject({ feeds: 2 });
    process.share.unfollow('a');
    await clock.advance(TTL_MS / 2);
    expect(store.processes.get('self')).toMatchObject({ feeds: 1 });
  });

  it('ends its lease when it ends', async () => {
    const { process, store, end } = setUp();
    await process.join();
    expect([...store.processes.keys()]).toEqual(['self']);
    await end();
    expect(store.processes.size).toBe(0);
  });

  it('ends its lease when it ends during a renewal', async () => {
    const { clock, database, process, store, renewals, end } = setUp();
    await process.join();
    database.latencyMs = 1_000;
    while (renewals.length < 2) await clock.advance(100);
    await end();
    expect(store.processes.size).toBe(0);
  });

  it('ends its lease when it ends while it joins', async () => {
    const { clock, database, process, store, end } = setUp();
    database.latencyMs = 1_000;
    const joined = process.join();
    await end();
    await clock.run(joined);
    expect(store.processes.size).toBe(0);
  });

  it('sends no statement when it ends before it has joined', async () => {
    const { clock, process, renewals, end } = setUp();
    await clock.advance(TTL_MS);
    await end();
    expect(renewals).toEqual([]);
    expect(process.aliveUntil()).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('a process that joins', () => {
  it('sends one statement, however many feeds wait for it', async () => {
    const { renewals, process } = setUp();
    await Promise.all([process.join(), process.join()]);
    await process.join();
    expect(renewals).toMatchObject([{ at: 0 }]);
  });

  it('tries again at the next call when the database was unreachable', async () => {
    const { clock, database, process, isAlive } = setUp();
    database.isAway = true;
    await expect(process.join()).rejects.toThrow('connection');
    await clock.advance(TTL_MS);
    database.isAway = false;
    expect(isAlive()).toBe(false);
    await process.join();
    expect(isAlive()).toBe(true);
  });

  it('waits until the schema of the processes is usable', async () => {
    let isReady = false;
    const { process, renewals } = setUp({
      ready: async () => {
        if (!isReady) throw new StoreFailure('schema', 'hold');
      },
    });
    await expect(process.join()).rejects.toThrow('schema');
    expect(renewals).toEqual([]);
    isReady = true;
    await process.join();
    expect(renewals).toHaveLength(1);
  });

  it('removes its dead predecessors, and shares no feeds with them', async () => {
    const { process, store, live } = setUp({ isDead: (holder) => holder.startsWith('dead') });
    for (const holder of ['dead-1', 'other', 'dead-2']) await live(holder, TTL_MS, FEEDS.length);
    for (const feed of FEEDS) process.share.follow(feed);
    await process.join();
    expect([...store.processes.keys()].sort()).toEqual(['other', 'self']);
    expect(FEEDS.filter((feed) => process.reserve(feed, null))).toHaveLength(FEEDS.length / 2);
  });

  it('removes them at the next call when the database was cut off in between', async () => {
    const { process, database, store, live, clock } = setUp({ isDead: (holder) => holder === 'dead' });
    await live('dead', 3_600_000);
    database.latencyMs = 1_000;
    const joined = process.join();
    await clock.advance(1_500); // after the first renewal
    database.isAway = true;
    await expect(clock.run(joined)).rejects.toThrow('connection');
    database.isAway = false;
    await clock.run(process.join());
    expect([...store.processes.keys()]).toEqual(['self']);
  });

  it('removes no process later, since two containers may have the same host name and process id', async () => {
    const { clock, process, store, live } = setUp({ isDead: (holder) => holder !== 'self' });
    await process.join();
    await live('twin', 3_600_000);
    await process.join();
    await clock.advance(2 * TTL_MS);
    expect([...store.processes.keys()].sort()).toEqual(['self', 'twin']);
  });
});

describe('a listener', () => {
  it('is not called any more when it has ended', async () => {
    const { clock, process, live } = setUp();
    let calls = 0;
    const listener = () => {
      calls += 1;
    };
    for (let twice = 0; twice < 2; twice += 1) process.listen(listener);
    await live('other');
    await process.join();
    expect(calls).toBe(1);
    process.unlisten(listener);
    await live('another');
    await clock.advance(2 * STANDBY_MS);
    expect(calls).toBe(1);
  });
});

describe('the other processes', () => {
  it('are known within 1.5 s when one joins or ends, and only then', async () => {
    const { clock, process, store, events, live } = setUp();
    await process.join();
    events.length = 0;
    await live('other', 3_600_000);
    await clock.advance(STANDBY_MS);
    expect(events).toEqual(['processes changed']);
    await clock.advance(TTL_MS);
    await store.removeProcess('other');
    await clock.advance(STANDBY_MS);
    expect(events).toEqual(['processes changed', 'processes changed']);
    await clock.advance(TTL_MS);
    expect(events).toHaveLength(2);
  });

  it('no longer count when their leases have expired', async () => {
    const { clock, process, events, live } = setUp();
    await live('killed');
    await process.join();
    events.length = 0;
    await clock.advance(TTL_MS);
    expect(events).toEqual([]);
    await clock.advance(2 * STANDBY_MS);
    expect(events).toEqual(['processes changed']);
  });

  it('count as before while the database is unreachable', async () => {
    const { clock, database, process, events, live } = setUp();
    await live('other', 3_600_000);
    await process.join();
    events.length = 0;
    database.isAway = true;
    await clock.advance(10 * TTL_MS);
    database.isAway = false;
    await clock.advance(STANDBY_MS);
    expect(events).toEqual([]);
  });
});

describe('a process that has lost its lease', () => {
  const lost = async (loseIt: (parts: ReturnType<typeof setUp>) => void) => {
    const parts = setUp();
    await parts.live('other', 3_600_000);
    for (const feed of ['own', 'free']) parts.process.share.follow(feed);
    await parts.process.join();
    await parts.clock.advance(3.5 * STANDBY_MS);
    expect(parts.process.reserve('free', 'dead')).toBe(true);
    parts.process.share.release('free');
    loseIt(parts);
    return parts;
  };

  it('renews it', async () => {
    const { clock, isAlive } = await lost(({ store }) => store.processes.clear());
    expect(isAlive()).toBe(false);
    await clock.advance(STANDBY_MS);
    expect(isAlive()).toBe(true);
  });

  it.each<[string, (parts: ReturnType<typeof setUp>) => void]>([
    ['the table of the processes was emptied', ({ store }) => store.processes.clear()],
    ['the clock of the database was set back', ({ database }) => Object.assign(database, { aheadMs: -3_600_000 })],
    ['the clock of the database was set forward', ({ database }) => Object.assign(database, { aheadMs: 3_600_000 })],
  ])('takes no feed of others for the time to live, but its own, when %s', async (_, loseIt) => {
    const { clock, process } = await lost(loseIt);
    await clock.advance(2 * STANDBY_MS);
    expect(process.reserve('free', 'dead')).toBe(false);
    expect(process.reserve('own', 'self')).toBe(true);
    await clock.advance(TTL_MS - 3 * STANDBY_MS);
    expect(process.reserve('free', 'dead')).toBe(false);
    await clock.advance(3 * STANDBY_MS);
    expect(process.reserve('free', 'dead')).toBe(true);
  });

  it('reports once that the clock of the database was set back', async () => {
    const { clock, events } = await lost(({ database }) => Object.assign(database, { aheadMs: -3_600_000 }));
    events.length = 0;
    await clock.advance(10 * TTL_MS);
    expect(events.filter((event) => event === 'clock was set back')).toHaveLength(1);
  });

  it('does not count it as set back when the clock of the database was set forward, or rows are missing', async () => {
    const { clock, database, store, events } = await lost(() => {});
    database.aheadMs = 3_600_000;
    await clock.advance(TTL_MS);
    store.processes.clear();
    await clock.advance(TTL_MS);
    expect(events).not.toContain('clock was set back');
  });
});

describe('a process whose renewals fail', () => {
  it('keeps trying, and is alive again once one succeeds', async () => {
    const { clock, database, process, renewals, isAlive } = setUp();
    await process.join();
    database.isAway = true;
    await clock.advance(10 * TTL_MS);
    expect(renewals.length).toBeGreaterThan(190);
    expect(process.aliveUntil()).toBeLessThan(clock.monotonic());
    database.isAway = false;
    await clock.advance(STANDBY_MS);
    expect(isAlive()).toBe(true);
  });

  it('says so once its lease has expired, since other processes may have taken its feeds, until one succeeds', async () => {
    const { clock, database, process } = setUp();
    await process.join();
    database.isAway = true;
    await clock.advance(TTL_MS - STANDBY_MS);
    await expect(process.join()).resolves.toBeUndefined();
    await clock.advance(STANDBY_MS);
    await expect(process.join()).rejects.toThrow('connection');
    database.isAway = false;
    await clock.advance(2 * STANDBY_MS);
    await expect(process.join()).resolves.toBeUndefined();
  });

  it('takes no feed once its lease has expired: others would take it at once', async () => {
    const { clock, database, process } = setUp();
    for (const feed of ['own', 'free']) process.share.follow(feed);
    await process.join();
    database.isAway = true;
    await clock.advance(TTL_MS);
    expect(process.reserve('free', 'dead')).toBe(false);
    expect(process.reserve('own', 'self')).toBe(false);
    database.isAway = false;
    await clock.advance(2 * STANDBY_MS);
    expect(process.reserve('own', 'self')).toBe(true);
  });

  it('is still alive when two renewals in a row failed', async () => {
    const { clock, database, process, isAlive } = setUp();
    process.share.follow('free');
    await process.join();
    database.isAway = true;
    await clock.advance((2 / 3) * TTL_MS + STANDBY_MS);
    database.isAway = false;
    expect(isAlive()).toBe(true);
    await clock.advance(STANDBY_MS);
    expect(process.aliveUntil()).toBeGreaterThan(clock.monotonic() + TTL_MS - STANDBY_MS);
    expect(process.reserve('free', 'dead')).toBe(true);
  });
});

describe('a schema whose feeds the process cannot read', () => {
  const unusable = ({ renewals }: { readonly renewals: readonly Renewal[] }) => renewals.at(-1)?.unusable;

  it('is named after the time to live, until they can be read again', async () => {
    const { clock, process, renewals } = setUp();
    await process.join();
    for (const isRead of [true, false]) process.recordRead('a', isRead);
    await clock.advance(TTL_MS);
    process.recordRead('a', false);
    process.recordRead('b', true);
    expect(unusable({ renewals })).toEqual([]);
    await clock.advance(2 * STANDBY_MS);
    expect(unusable({ renewals })).toEqual(['a']);
    process.recordRead('a', true);
    await clock.advance(2 * STANDBY_MS);
    expect(unusable({ renewals })).toEqual([]);
  });

  it('is in its row within a third of the time to live from then on, so that other processes take its feeds', async () => {
    const { clock, process, store } = setUp();
    await process.join();
    process.recordRead('a', false);
    await clock.advance(TTL_MS + TTL_MS / 3 + 2 * STANDBY_MS);
    expect(store.processes.get('self')).toMatchObject({ unusable: ['a'] });
    process.recordRead('a', true);
    await clock.advance(TTL_MS / 3 + STANDBY_MS);
    expect(store.processes.get('self')).toMatchObject({ unusable: [] });
  });

  it('is not named when the whole database was unreachable', async () => {
    const { clock, database, process, renewals } = setUp();
    await process.join();
    database.isAway = true;
    for (let round = 0; round < 20; round += 1) {
      process.recordRead('a', false);
      await clock.advance(TTL_MS / 6);
    }
    database.isAway = false;
    process.recordRead('a', false);
    await clock.advance(TTL_MS / 2);
    process.recordRead('a', true);
    await clock.advance(TTL_MS);
    expect(renewals.flatMap((renewal) => renewal.unusable)).toEqual([]);
  });

  it('is not named during an outage of the whole database in which statements hang before they fail', async () => {
    const { clock, database, process, renewals } = setUp();
    await process.join();
    Object.assign(database, { isAway: true, latencyMs: TTL_MS / 3 });
    process.recordRead('a', false);
    await clock.advance(5 * TTL_MS);
    Object.assign(database, { isAway: false, latencyMs: 0 });
    await clock.advance(TTL_MS / 3 + STANDBY_MS);
    process.recordRead('a', true);
    await clock.advance(TTL_MS);
    expect(renewals.flatMap((renewal) => renewal.unusable)).toEqual([]);
  });
});
