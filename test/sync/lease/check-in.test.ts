import { describe, expect, it } from 'vitest';
import { createCheckIn } from '../../../src/sync/lease/check-in.js';
import { createProcessLeases } from '../../../src/sync/lease/process-leases.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const TTL_MS = 30_000;
const INTERVAL_MS = 10_000;

/** A process that follows two feeds, one in each of two schemas. */
function setup() {
  const clock = new VirtualClock();
  const leases = createProcessLeases({ clock, holder: 'process', isDead: () => false, leaseTtlMs: TTL_MS });
  const open = (schema: string) => {
    const store = new ModelStore(clock.monotonic);
    leases.share.follow(`feed in ${schema}`);
    leases.announcementSchemas.add(schema);
    const announced = () => [...store.processes.keys()];
    return { store, announced, ...createCheckIn(schema, store, leases) };
  };
  const [a, b] = [open('a'), open('b')];
  const mayTake = () => leases.share.mayTake('another feed', clock.monotonic());
  return { clock, leases, open, a, b, mayTake };
}

describe('a process', () => {
  it('is announced in each of the first schemas, again after half of the interval', async () => {
    const { clock, a, b } = setup();
    for (const schema of [a, b]) await schema.checkIn();
    expect([a.announced(), b.announced()]).toEqual([['process'], ['process']]);
    a.store.processes.clear();
    await a.checkIn();
    expect(a.announced()).toEqual([]);
    await clock.advance(INTERVAL_MS / 2);
    await a.checkIn();
    expect(a.announced()).toEqual(['process']);
  });

  it('shares its feeds with processes that it finds in any of them', async () => {
    const { a, b, mayTake } = setup();
    await b.store.checkIn('other', 2, TTL_MS);
    for (const schema of [b, a]) await schema.checkIn();
    expect([mayTake(), mayTake()]).toEqual([true, false]);
  });

  it('is announced in the others when one refuses it', async () => {
    const { a, b, mayTake } = setup();
    a.store.checkIn = async () => {
      throw new ModelFailure('permission');
    };
    await b.store.checkIn('other', 2, TTL_MS);
    await expect(a.checkIn()).rejects.toThrow('permission');
    await b.checkIn();
    expect([mayTake(), mayTake()]).toEqual([true, false]);
  });

  it('ends its announcement when a schema is no longer one of the first', async () => {
    const { open, b } = setup();
    await b.checkIn();
    for (const schema of ['aa', 'ab']) open(schema);
    await b.checkIn();
    expect(b.announced()).toEqual([]);
  });

  it('is not announced after it has checked out, even if it was checking in then', async () => {
    const { clock, leases, a } = setup();
    const { checkIn } = a.store;
    a.store.checkIn = async (...given) => {
      await clock.pause(1_000);
      return checkIn.apply(a.store, given);
    };
    const checking = a.checkIn();
    leases.announcementSchemas.delete('a');
    await clock.run(a.checkOut());
    await checking;
    await a.checkIn();
    expect(a.announced()).toEqual([]);
  });

  it('ends its announcement when it follows only one feed', async () => {
    const { leases, a } = setup();
    await a.checkIn();
    leases.share.unfollow('feed in b');
    await a.checkIn();
    expect(a.announced()).toEqual([]);
  });

  it('does not wait for a locked table once it has been announced', async () => {
    const { clock, a } = setup();
    await a.checkIn();
    await clock.advance(INTERVAL_MS / 2);
    a.store.checkIn = () => new Promise(() => {});
    await expect(a.checkIn()).resolves.toBeUndefined();
  });

  it('ends the announcements of its dead predecessor everywhere, once, and never its own', async () => {
    const { clock, a, b } = setup();
    for (const { store } of [a, b]) await store.checkIn('predecessor', 2, TTL_MS);
    await a.checkOutPredecessor('predecessor'); // it is not announced yet
    for (const schema of [a, b]) await schema.checkIn();
    expect([a.announced(), b.announced()]).toEqual([['process'], ['process']]);
    await a.store.checkIn('predecessor', 2, TTL_MS);
    for (const name of ['predecessor', 'process']) await a.checkOutPredecessor(name);
    await clock.advance(INTERVAL_MS / 2);
    await a.checkIn();
    expect(a.announced().sort()).toEqual(['predecessor', 'process']);
  });

  it('ends the announcement of a predecessor at once when it is announced itself', async () => {
    const { a } = setup();
    await a.checkIn();
    await a.store.checkIn('predecessor', 2, TTL_MS);
    await a.checkOutPredecessor('predecessor');
    expect(a.announced()).toEqual(['process']);
  });
});
