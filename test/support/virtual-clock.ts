import type { Clock } from '../../src/core/clock.js';

/** 1 January 2026: any fixed moment does. */
const START = Date.UTC(2026, 0, 1);

/** Of one piece of work, so that an endless one fails. Three days of a feed take some 560,000. */
const MOST_WAKES = 1_000_000;

/**
 * A clock that stops while anything can run, and then jumps to the time of the next timer. A test takes no real time, and
 * depends only on its seed.
 */
export class VirtualClock implements Clock {
  #elapsed = 0;
  readonly #sleepers = new Sleepers();
  readonly #random: () => number;

  /** @param settled resolves once everything that can run has run */
  constructor(
    seed = 1,
    private readonly settled: () => Promise<void> = nextTurn,
  ) {
    this.#random = seededRandom(seed);
  }

  now = (): number => START + this.#elapsed;
  monotonic = (): number => this.#elapsed;
  random = (): number => this.#random();

  sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = () => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const sleeper = this.#sleepers.add(this.#elapsed + Math.max(0, ms), wake);
      const abort = () => {
        this.#sleepers.cancel(sleeper);
        wake();
      };
      signal.addEventListener('abort', abort, { once: true });
    });

  /** Waits for this much time; nothing ends it early. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#sleepers.add(this.#elapsed + Math.max(0, ms), resolve);
    });
  }

  /**
   * Lets time pass until the work is done. Fails if nothing is left to wait for, after `limitMs` of virtual time, or where
   * so much happens that somebody must be going in circles.
   */
  async run<T>(work: Promise<T>, limitMs = Number.POSITIVE_INFINITY): Promise<T> {
    let settled = false;
    const watched = work.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    for (let wakes = 0; wakes < MOST_WAKES; wakes += 1) {
      await this.settled();
      if (settled) return watched;
      if (this.#elapsed > limitMs) throw new Error(`not done after ${limitMs} ms of virtual time`);
      const next = this.#sleepers.takeNext();
      if (next === undefined) throw new Error('everything waits, and nothing is left to happen');
      this.#elapsed = Math.max(this.#elapsed, next.wakeAt);
      next.wake?.();
    }
    throw new Error(`not done after ${MOST_WAKES} steps`);
  }

  /** Lets this much time pass. */
  async advance(ms: number): Promise<void> {
    await this.run(this.pause(ms));
  }
}

interface Sleeper {
  readonly wakeAt: number;
  readonly order: number;
  /** Null once it was woken otherwise. */
  wake: (() => void) | null;
}

/** Those who wait, the next to wake first; of equals the one that came first. A binary heap. */
class Sleepers {
  #heap: Sleeper[] = [];
  #order = 0;
  #cancelled = 0;

  add(wakeAt: number, wake: () => void): Sleeper {
    const sleeper = { wakeAt, order: this.#order++, wake };
    this.#heap.push(sleeper);
    this.#rise(this.#heap.length - 1);
    return sleeper;
  }

  /** Cancels a sleeper. It stays in the queue and is skipped later; the queue is cleaned when most sleepers are cancelled. */
  cancel(sleeper: Sleeper): void {
    if (sleeper.wake === null) return;
    sleeper.wake = null;
    this.#cancelled += 1;
    if (this.#cancelled < 64 || this.#cancelled < this.#heap.length / 2) return;
    // An array in order is a heap.
    this.#heap = this.#heap.filter((other) => other.wake !== null).sort(compare);
    this.#cancelled = 0;
  }

  takeNext(): Sleeper | undefined {
    for (;;) {
      const [first] = this.#heap;
      const last = this.#heap.pop();
      if (first === undefined || last === undefined) return undefined;
      if (last !== first) {
        this.#heap[0] = last;
        this.#sink();
      }
      if (first.wake !== null) return first;
      this.#cancelled -= 1;
    }
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfEarlier(at, parent)) return;
      at = parent;
    }
  }

  #sink(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const [a, b] = [this.#heap[left], this.#heap[right]];
      if (a === undefined) return;
      const child = b !== undefined && compare(b, a) < 0 ? right : left;
      if (!this.#swapIfEarlier(child, at)) return;
      at = child;
    }
  }

  #swapIfEarlier(lower: number, upper: number): boolean {
    const [a, b] = [this.#heap[lower] as Sleeper, this.#heap[upper] as Sleeper];
    if (compare(a, b) > 0) return false;
    this.#heap[lower] = b;
    this.#heap[upper] = a;
    return true;
  }
}

function compare(a: Sleeper, b: Sleeper): number {
  return a.wakeAt - b.wakeAt || a.order - b.order;
}

/** All promise callbacks have run when the next turn of the event loop begins. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * They have, too, when the next tick is taken, which costs less. But the event loop does not turn meanwhile: only where
 * nothing is waited for but promises, and not for long.
 */
export function nextTick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** mulberry32: small, fast, good enough for choosing faults; the same seed gives the same course. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
