import { seededRandom } from '../support/virtual-clock.js';

/** Reproducible random choices from a seed. */
export interface Choices {
  /** Returns a uniform number in [0, 1). */
  random(): number;
  /** Returns true with this probability. */
  chance(probability: number): boolean;
  /** Returns a whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  pick<T>(options: readonly T[]): T;
}

export function choicesFrom(seed: number): Choices {
  const random = seededRandom(seed);
  return {
    random,
    chance: (probability) => random() < probability,
    between: (low, high) => low + Math.floor(random() * (high - low + 1)),
    pick: (options) => options[Math.floor(random() * options.length)] as (typeof options)[number],
  };
}
