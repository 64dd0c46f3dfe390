import type { Clock } from '../../src/sync/ports.js';

/** 1 January 2026: any fixed moment does. */
const START = Date.UTC(2026, 0, 1);

interface Sleeper {
  readonly wakeAt: number;
  readonly order: number;
  readonly wake: () => void;
}

/**
 * A clock that stands still until everything that can run has run, then jumps to the next moment at which something
 * waits to happen. So a test takes no time, and its course depends on nothing but its seed.
 */
export class VirtualClock implements Clock {
  #elapsed = 0;
  #order = 0;
  readonly #sleepers = new Set<Sleeper>();
  readonly #random: () => number;

  constructor(seed = 1) {
    this.#random = seededRandom(seed);
  }

  now = (): number => START + this.#elapsed;
  monotonic = (): number => this.#elapsed;
  random = (): number => this.#random();

  sleep = (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const sleeper: Sleeper = {
        wakeAt: this.#elapsed + Math.max(0, ms),
        order: this.#order++,
        wake: () => {
          this.#sleepers.delete(sleeper);
          signal.removeEventListener('abort', sleeper.wake);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal.addEventListener('abort', sleeper.wake, { once: true });
    });

  /** Lets time pass until the work is done. Fails if nothing is left to wait for, or after `limitMs` of virtual time. */
  async run<T>(work: Promise<T>, limitMs = Number.POSITIVE_INFINITY): Promise<T> {
    let settled = false;
    const watched = work.finally(() => {
      settled = true;
    });
    watched.catch(() => {});
    for (;;) {
      await settledTasks();
      if (settled) return watched;
      if (this.#elapsed > limitMs) throw new Error(`not done after ${limitMs} ms of virtual time`);
      if (!this.#wakeNext()) throw new Error('everything waits, and nothing is left to happen');
    }
  }

  /** Lets this much time pass. */
  async advance(ms: number): Promise<void> {
    await this.run(this.sleep(ms, new AbortController().signal));
  }

  #wakeNext(): boolean {
    let next: Sleeper | undefined;
    for (const sleeper of this.#sleepers) {
      if (
        next === undefined ||
        sleeper.wakeAt < next.wakeAt ||
        (sleeper.wakeAt === next.wakeAt && sleeper.order < next.order)
      ) {
        next = sleeper;
      }
    }
    if (next === undefined) return false;
    this.#elapsed = Math.max(this.#elapsed, next.wakeAt);
    next.wake();
    return true;
  }
}

/** All promise callbacks have run when the next turn of the event loop begins. */
function settledTasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
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
