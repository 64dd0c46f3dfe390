/**
 * Random values as a pure function of seed, run number and purpose, so that any run of a history can be generated at any time
 * and in any order, always with the same result.
 */

/** The finalizer of MurmurHash3: every bit of the input affects every bit of the output, and it is invertible. */
export function scramble(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Inverts {@link scramble}; the factors are the inverses modulo 2^32 of those above. */
export function unscramble(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x7ed1b41d);
  h = Math.imul(h ^ (h >>> 13) ^ (h >>> 26), 0xa5cb9243);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Returns 32 bits that depend on the seed, the run number and the purpose. */
export function hash(seed: number, number: number, purpose: number): number {
  return scramble(scramble(seed ^ Math.imul(number, 0x9e3779b1)) ^ Math.imul(purpose, 0x27d4eb2f) ^ number);
}

/** Uniform in [0, 1). */
export function draw(seed: number, number: number, purpose: number): number {
  return hash(seed, number, purpose) / 0x1_0000_0000;
}

/** Returns a seed for a text, such as an organization's name. */
export function seedOf(seed: number, text: string): number {
  let h = scramble(seed);
  for (let i = 0; i < text.length; i++) h = scramble(h ^ Math.imul(text.charCodeAt(i), 0x9e3779b1) ^ i);
  return h;
}

/** A short stream of random values (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000;
  }

  /** Returns a whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)] as T;
  }
}
