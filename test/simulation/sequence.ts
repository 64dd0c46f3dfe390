import type { Delivery } from './delivery.js';

/** What a page lists, and the place that its cursor leads to. */
export interface Stretch {
  readonly listed: readonly Delivery[];
  readonly upTo: number;
}

/** Distance of deliveries within the same millisecond. Doubles leave room for many places between two of them. */
const GAP_MS = 1e-3;

/** The one sequence of the feed, in the order of its keys. */
export class Sequence {
  readonly deliveries: Delivery[] = [];
  #lastKey = 0;

  /** A place for a new delivery: the end, by time; deliveries of the same millisecond follow each other. */
  end(now: number): number {
    this.#lastKey = Math.max(this.#lastKey + GAP_MS, now);
    return this.#lastKey;
  }

  /** A place somewhere before the end; of its own. */
  before(random: number): number {
    return random * Math.max(1, this.#lastKey);
  }

  /** A place of its own right after the latest delivery of a run; null if the run was never delivered. */
  again(scanId: string, random: number): number | null {
    const index = this.deliveries.findLastIndex((delivery) => delivery.scanId === scanId);
    const last = this.deliveries[index];
    if (last === undefined) return null;
    const next = this.deliveries[index + 1]?.key ?? last.key + GAP_MS;
    return last.key + (next - last.key) * (0.25 + random / 2);
  }

  /** Two deliveries at one place would let a cursor pass both when only one was listed. */
  insert(delivery: Delivery): void {
    const index = this.#firstAfter(delivery.key);
    if (this.deliveries[index - 1]?.key === delivery.key)
      throw new Error(`there are two deliveries at ${delivery.key}`);
    this.deliveries.splice(index, 0, delivery);
  }

  /** What comes after a place: at most `limit` entries, of at most `scanned` that are looked at. */
  after(
    place: number,
    now: number,
    isWanted: (delivery: Delivery) => boolean,
    limit: number,
    scanned: number,
  ): Stretch {
    const listed: Delivery[] = [];
    let upTo = place;
    let looked = 0;
    for (let index = this.#firstAfter(place); index < this.deliveries.length; index += 1) {
      const delivery = this.deliveries[index] as Delivery;
      if (delivery.visibleFrom > now) continue;
      if (listed.length === limit || looked === scanned) break;
      looked += 1;
      upTo = delivery.key;
      if (isWanted(delivery)) listed.push(delivery);
    }
    return { listed, upTo };
  }

  /** The place right before the first visible delivery after a place that is meant; behind all of them if none is. */
  placeBefore(from: number, now: number, isMeant: (delivery: Delivery) => boolean): number {
    let place = from;
    for (const delivery of this.deliveries.slice(this.#firstAfter(from))) {
      if (delivery.visibleFrom > now) continue;
      if (isMeant(delivery)) break;
      place = delivery.key;
    }
    return place;
  }

  /** Whether nothing is listed after a place, whatever the filters. */
  isEnd(place: number, now: number): boolean {
    return !this.deliveries.slice(this.#firstAfter(place)).some(({ visibleFrom }) => visibleFrom <= now);
  }

  #firstAfter(place: number): number {
    let [low, high] = [0, this.deliveries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.deliveries[middle] as Delivery).key > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
