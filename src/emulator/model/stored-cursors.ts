import { beginning, comparePlaces, type Place } from './sequence.js';

/**
 * The probable positions of clients. The service does not record what was consumed (interface 1.4); the emulator does, to place
 * new revisions behind every stored cursor.
 */

/** Time after which an unused cursor counts as forgotten, milliseconds. */
const forgottenAfterMs = 10 * 60_000;
const most = 1000;

export class StoredCursors {
  readonly #places = new Map<string, { place: Place; at: number }>();

  /** Records that a client moved from `from` (null without a cursor) to `to`. */
  moved(from: Place | null, to: Place, nowMs: number): void {
    if (from !== null) this.#places.delete(keyOf(from));
    this.#places.delete(keyOf(to));
    this.#places.set(keyOf(to), { place: to, at: nowMs });
    for (const [key, { at }] of this.#places) {
      if (this.#places.size <= most && nowMs - at < forgottenAfterMs) break;
      this.#places.delete(key);
    }
  }

  /** Returns the lowest place that a client may hold, or null if none is known. */
  lowest(nowMs: number): Place | null {
    let lowest: Place | null = null;
    for (const { place, at } of this.#places.values()) {
      // Nothing can be placed before the beginning; a client there sees everything anyway.
      if (nowMs - at >= forgottenAfterMs || place.at === beginning.at) continue;
      if (lowest === null || comparePlaces(place, lowest) < 0) lowest = place;
    }
    return lowest;
  }
}

const keyOf = (place: Place): string => `${place.at}:${place.order}`;
