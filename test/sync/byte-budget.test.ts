import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createByteBudget, type Holding, type Line, type Room } from '../../src/sync/byte-budget.js';

const never = new AbortController().signal;
const CAPACITY = 1_000;

const result = (room: Room, bytes = 0) => room.tryHold(bytes, 'result', never);
function held<T>(holding: T | null): T {
  if (holding === null) throw new Error('there was no room');
  return holding;
}
/** A download that has come to its end. */
function loaded(room: Room, bytes: number, what: 'page' | 'result' = 'result'): Holding {
  const holding = held(room.tryHold(bytes, what, never));
  holding.finished(bytes);
  return holding;
}

describe('a budget of bytes', () => {
  it('has room until it is used up, and again for what is given back', () => {
    const budget = createByteBudget(CAPACITY);
    const room = budget.open('feed');
    const first = loaded(room, 600);
    expect(result(room, 401)).toBeNull();
    const second = held(result(room, 400));
    expect(budget.held).toBe(1_000);
    second.release();
    first.release();
    first.release();
    expect(budget.held).toBe(0);
  });

  it('counts what arrives, and in the end what stays', () => {
    const budget = createByteBudget(CAPACITY);
    const download = held(result(budget.open('feed')));
    download.arrived(100);
    download.arrived(80);
    expect(budget.held).toBe(100);
    download.finished(60);
    expect(budget.held).toBe(60);
  });

  it('lets the first download go on alone when it is used up, and the others give way', () => {
    const budget = createByteBudget(CAPACITY);
    const room = budget.open('feed');
    loaded(room, 200, 'page');
    const [first, second, third] = [held(result(room)), held(result(room)), held(result(room))];
    second.arrived(500);
    third.arrived(400);
    expect([third.needs, third.signal.aborted]).toEqual([400, true]);
    third.release();
    first.arrived(900);
    expect(first.signal.aborted).toBe(false);
    expect([second.needs, second.signal.aborted]).toEqual([500, true]);
    expect(never.aborted).toBe(false);
  });

  it('lets none beyond it while something of its own page can be committed first', () => {
    const budget = createByteBudget(CAPACITY);
    const room = budget.open('feed');
    const ready = loaded(room, 500);
    const download = held(result(room));
    download.arrived(501);
    expect(download.needs).toBe(501);
    download.release();
    ready.release();
    expect(result(room, 5_000)).not.toBeNull();
  });

  it('lets none beyond it while an earlier page is held, whoever asked first', () => {
    const budget = createByteBudget(CAPACITY);
    const [earlier, later] = [budget.open('feed'), budget.open('feed')];
    const early = loaded(later, 700);
    expect(result(later, 400)).toBeNull();
    // What comes first waits for nobody: the later page cannot be committed before it.
    expect(result(earlier, 400)).not.toBeNull();
    early.release();
  });

  it('keeps half of it for the pages of the feed', () => {
    const budget = createByteBudget(CAPACITY);
    loaded(budget.open('backfill'), 400);
    loaded(budget.open('feed'), 100);
    expect(result(budget.open('sweep'), 101)).toBeNull();
    expect(result(budget.open('feed'), 500)).not.toBeNull();
  });

  it.each([
    ['pending', 'feed'],
    ['backfill', 'pending'],
    ['sweep', 'backfill'],
  ] satisfies [Line, Line][])('what is %s gives way to what is %s', (behind, before) => {
    const budget = createByteBudget(CAPACITY);
    const slow = held(result(budget.open(behind), 5_000));
    held(result(budget.open(before), 700));
    expect(slow.needs).toBe(5_000);
  });

  it('lets small pages pass, so that polling does not end a long download', () => {
    const budget = createByteBudget(CAPACITY);
    const slow = held(result(budget.open('pending'), 5_000));
    const room = budget.open('feed');
    const poll = held(room.tryHold(0, 'page', never));
    poll.arrived(CAPACITY / 16);
    poll.finished(CAPACITY / 16);
    slow.arrived(6_000);
    expect([slow.needs, poll.needs]).toEqual([null, null]);
    held(room.tryHold(CAPACITY / 16 + 1, 'page', never));
    expect(slow.needs).not.toBeNull();
  });

  it('wakes those that wait, the first in line before the others', async () => {
    const budget = createByteBudget(CAPACITY);
    const full = loaded(budget.open('feed'), 1_000);
    const order: string[] = [];
    const wait = async (line: Line) => {
      const holding = await budget.open(line).hold(300, 'result', never);
      order.push(line);
      return holding;
    };
    const waiting = [wait('sweep'), wait('pending'), wait('feed')];
    full.release();
    const [sweep, pending, feed] = await Promise.race([Promise.all(waiting), settled([null, null, null])]);
    expect([sweep, pending, feed]).toEqual([null, null, null]); // the half behind the feed has room for one of them
    expect(order).toEqual(['feed', 'pending']);
    (await waiting[1])?.release();
    await waiting[0];
    expect(order).toEqual(['feed', 'pending', 'sweep']);
  });

  it('ends a wait with its signal, and gives nothing to a room that is closed', async () => {
    const budget = createByteBudget(CAPACITY);
    const full = loaded(budget.open('feed'), 1_000);
    const stop = new AbortController();
    const waiting = budget.open('feed').hold(300, 'page', stop.signal);
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    full.release();
    expect(budget.held).toBe(0);
    const room = budget.open('feed');
    loaded(room, 10);
    room.close();
    expect([budget.held, result(room)]).toEqual([0, null]);
  });

  it('says when bytes were given back', () => {
    const given: number[] = [];
    const budget = createByteBudget(CAPACITY, (bytes) => given.push(bytes));
    const room = budget.open('feed');
    loaded(room, 10).release();
    loaded(room, 20);
    room.close();
    expect(given).toEqual([10, 20]);
  });

  it('holds no more than itself and one download, and somebody always goes on', () => {
    const step = fc.record({ page: fc.nat(3), download: fc.nat(5), bytes: fc.integer({ min: 1, max: 700 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const budget = createByteBudget(CAPACITY);
        const rooms = Array.from({ length: 4 }, () => budget.open('feed'));
        const running = new Map<string, Holding>();
        let largest = 0;
        for (const { page, download, bytes } of steps) {
          const name = `${page} ${download}`;
          const holding = running.get(name) ?? rooms[page]?.tryHold(0, 'result', never) ?? null;
          if (holding === null) continue;
          running.set(name, holding);
          holding.arrived(holding.bytes + bytes);
          largest = Math.max(largest, holding.bytes);
          for (const [other, { needs }] of running) {
            if (needs === null) continue;
            running.get(other)?.release();
            running.delete(other);
          }
          expect(budget.held).toBeLessThanOrEqual(CAPACITY + largest);
        }
        // Whatever the others hold, the first page's next download goes on once its own results are committed.
        for (const [name, holding] of running) if (name.startsWith('0')) holding.release();
        expect(rooms[0]?.tryHold(10 * CAPACITY, 'result', never)).not.toBeNull();
      }),
      { numRuns: 500 },
    );
  });
});

/** Comes after whatever has been waiting for promises alone. */
async function settled<T>(value: T): Promise<T> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  return value;
}
