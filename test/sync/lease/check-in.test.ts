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
  return { clock, share, stores, announced, use, leave, checkOutDead };
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

  it('is announced in the next one while the first one refuses it', async () => {
    const { clock, stores, announced, use } = setup();
    await use('a');
    await use('b');
    const { checkIn } = stores.a;
    stores.a.checkIn = async () => {
      throw new ModelFailure('permission');
    };
    await clock.advance(INTERVAL_MS / 2);
    await use('a'); // it knows the other processes, so this is no failure
    await use('b');
    expect(announced()).toEqual(['b']);
    stores.a.checkIn = checkIn;
    await clock.advance(INTERVAL_MS / 2);
    await use('a');
    expect(announced()).toEqual(['a']);
  });

  it('does not lead feeds as if it were alone while its first announcement fails', async () => {
    const { stores, use } = setup();
    stores.a.checkIn = async () => {
      throw new ModelFailure('permission');
    };
    await expect(use('a')).rejects.toThrow('permission');
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
