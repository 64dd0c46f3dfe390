import type { Delivery } from './delivery.js';

/** Entries of a page, and the position of its cursor. */
export interface Slice {
  readonly listed: readonly Delivery[];
  readonly upTo: number;
}

/** Distance of deliveries within one millisecond. Doubles have many further positions between two of them. */
const GAP_MS = 1e-3;

/** The sequence of the feed, ordered by key. */
export class Sequence {
  readonly deliveries: Delivery[] = [];
  #lastKey = 0;

  /** Returns a new position at the end, by time; deliveries of one millisecond follow each other. */
  end(now: number): number {
    this.#lastKey = Math.max(this.#lastKey + GAP_MS, now);
    return this.#lastKey;
  }

  /** Returns a new random position before the end. */
  before(random: number): number {
    return random * Math.max(1, this.#lastKey);
  }

  /** Returns a new position directly after the latest delivery of a run; null if the run was never delivered. */
  again(scanId: string, random: number): number | null {
    const index = this.deliveries.findLastIndex((delivery) => delivery.scanId === scanId);
    const last = this.deliveries[index];
    if (last === undefined) return null;
    const next = this.deliveries[index + 1]?.key ?? last.key + GAP_MS;
    return last.key + (next - last.key) * (0.25 + random / 2);
  }

  /** Inserts a delivery. Throws if its position is taken: a cursor would skip one when only the other was listed. */
  insert(delivery: Delivery): void {
    const index = this.#firstAfter(delivery.key);
    if (this.deliveries[index - 1]?.key === delivery.key)
      throw new Error(`there are two deliveries at ${delivery.key}`);
    this.deliveries.splice(index, 0, delivery);
  }

  /** Returns at most `limit` wanted entries after a position, from at most `scanned` visible ones. */
  after(
    position: number,
    now: number,
    isWanted: (delivery: Delivery) => boolean,
    limit: number,
    scanned: number,
  ): Slice {
    const listed: Delivery[] = [];
    let upTo = position;
    let scannedCount = 0;
    for (let index = this.#firstAfter(position); index < this.deliveries.length; index += 1) {
      const delivery = this.deliveries[index] as Delivery;
      if (delivery.visibleFrom > now) continue;
      if (listed.length === limit || scannedCount === scanned) break;
      scannedCount += 1;
      upTo = delivery.key;
      if (isWanted(delivery)) listed.push(delivery);
    }
    return { listed, upTo };
  }

  /** Returns the position directly before the first visible delivery that is meant; after all of them if none is. */
  positionBefore(from: number, now: number, isMeant: (delivery: Delivery) => boolean): number {
    let position = from;
    for (const delivery of this.deliveries.slice(this.#firstAfter(from))) {
      if (delivery.visibleFrom > now) continue;
      if (isMeant(delivery)) break;
      position = delivery.key;
    }
    return position;
  }

  /** Returns whether nothing is visible after a position, with any filters. */
  isEnd(position: number, now: number): boolean {
    return !this.deliveries.slice(this.#firstAfter(position)).some(({ visibleFrom }) => visibleFrom <= now);
  }

  #firstAfter(position: number): number {
    let [low, high] = [0, this.deliveries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.deliveries[middle] as Delivery).key > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
