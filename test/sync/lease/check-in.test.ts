import { describe, expect, it } from 'vitest';
import { createCheckIn } from '../../../src/sync/lease/check-in.js';
import { createFeedShare } from '../../../src/sync/lease/feed-share.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const INTERVAL_MS = 10_000;

/** A process that follows two feeds, and the stores of three schemas. */
function setup() {
  const clock = new VirtualClock();
  const share = createFeedShare(TTL_MS);
  for (const feed of ['one', 'two']) share.follow(feed);
  const parts = { clock, holder: 'process', leaseTtlMs: TTL_MS, intervalMs: INTERVAL_MS };
  const { checkIn, leave, checkOutDead } = createCheckIn(parts, share);
  const stores = {
    a: new ModelStore(clock.monotonic),
    b: new ModelStore(clock.monotonic),
    c: new ModelStore(clock.monotonic),
  };
  type Name = keyof typeof stores;
  const announced = () => (Object.keys(stores) as Name[]).filter((name) => stores[name].processes.has('process'));
  const use = (name: Name) => checkIn(name, stores[name]);
  /** Lets a schema refuse announcements until the returned function is called. */
  const refuses = (name: Name) => {
    const accepting = stores[name].checkIn;
    stores[name].checkIn = async () => {
      throw new ModelFailure('permission');
    };
    return () => {
      stores[name].checkIn = accepting;
    };
  };
  return { clock, share, stores, announced, use, refuses, leave, checkOutDead };
}

describe('a process whose feeds have several schemas', () => {
  it('is announced in the first one by name that can be used, and nowhere else', async () => {
    const { clock, announced, use } = setup();
    await use('c');
    expect(announced()).toEqual(['c']);
    await use('a');
    await clock.advance(INTERVAL_MS / 2);
    await use('b');
    expect(announced()).toEqual(['a']);
  });

  it('stays announced there while it refuses it for less than the time to live of a lease, and then elsewhere', async () => {
    const { clock, stores, announced, use, refuses } = setup();
    await use('a');
    await use('b');
    const accept = refuses('a');
    const tryFor = async (ms: number) => {
      for (const until = clock.monotonic() + ms; clock.monotonic() < until; await clock.advance(INTERVAL_MS / 2)) {
        for (const name of ['a', 'b'] as const) await use(name);
      }
    };
    await tryFor(TTL_MS - INTERVAL_MS);
    expect(announced()).toEqual(['a']);
    await tryFor(2 * TTL_MS);
    expect(announced()).toContain('b');
    expect(await stores.b.checkIn('other', 2, TTL_MS)).toEqual(['other', 'process']);
    accept();
    await tryFor(2 * TTL_MS);
    expect(announced()).toEqual(['a']);
  });

  it('does not lead feeds as if it were alone while its first announcement fails', async () => {
    const { use, refuses } = setup();
    refuses('a');
    await expect(use('a')).rejects.toThrow('permission');
    await expect(use('a')).rejects.toThrow('permission');
  });

  it('does not wait for a locked table once it knows the others', async () => {
    const { clock, stores, use } = setup();
    await use('b');
    stores.a.checkIn = () => new Promise(() => {});
    await clock.advance(INTERVAL_MS / 2);
    await use('a');
    await use('b');
    expect(clock.monotonic()).toBe(INTERVAL_MS / 2);
  });

  it('ends the announcement of its predecessor wherever it is announced', async () => {
    const { clock, stores, announced, use, checkOutDead } = setup();
    for (const name of ['a', 'b'] as const) await stores[name].checkIn('predecessor', 2, TTL_MS);
    await use('b');
    await checkOutDead('predecessor');
    expect([...stores.b.processes.keys()]).toEqual(['process']);
    await clock.advance(INTERVAL_MS / 2);
    await use('a');
    await clock.advance(0);
    expect(announced()).toEqual(['a']);
    expect([...stores.a.processes.keys()]).toEqual(['process']);
  });

  it('is announced elsewhere when it leaves the schema', async () => {
    const { announced, use, leave } = setup();
    await use('a');
    await leave('a');
    expect(announced()).toEqual([]);
    await use('b');
    expect(announced()).toEqual(['b']);
    await leave('c');
    expect(announced()).toEqual(['b']);
  });

  it('shares its feeds with the processes that are announced there', async () => {
    const { clock, share, stores, use } = setup();
    await stores.a.checkIn('other', 2, TTL_MS);
    await use('a');
    expect(['one', 'two'].map((feed) => share.mayTake(feed, clock.monotonic()))).toEqual([true, false]);
  });
});
