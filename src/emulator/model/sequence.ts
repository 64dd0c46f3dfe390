import type { RunVersion } from './runs.js';
import { search, type Timeline } from './timeline.js';

/**
 * The sequence that every feed request reads (interface 4.2 rule 2), sorted by delivery time. It merges two lanes: generated
 * runs, which are computed, and placed entries (submissions, corrections, scripts), which are kept in memory.
 */

/** A place in the sequence: delivery time, then order among equal times. A cursor points directly after its place. */
export interface Place {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Run number in the generated lane, {@link placedLane} and up for placed entries. */
  readonly order: number;
}

const placedLane = 2 ** 33;
export const beginning: Place = { at: Number.MIN_SAFE_INTEGER, order: -1 };

/** Returns the place before all entries delivered at or after `at`. */
export const beforeTime = (at: number): Place => ({ at, order: -1 });
/** Returns the place after all entries delivered up to `at`. */
export const behindTime = (at: number): Place => ({ at, order: Number.MAX_SAFE_INTEGER });

export const comparePlaces = (a: Place, b: Place): number => a.at - b.at || a.order - b.order;

/** A run, or an entry that is sent byte for byte; fields that it lacks pass every filter. */
export type Content =
  | {
      /** The run. */
      readonly version: RunVersion;
    }
  | {
      /** The bytes, and the fields that filters compare. */
      readonly verbatim: { readonly text: string | Uint8Array; readonly fields: Partial<RunVersion> };
    };

export interface PlacedEntry extends Place {
  readonly content: Content;
}

interface ReadRequest {
  readonly from: Place;
  readonly nowMs: number;
  readonly limit: number;
  /** Maximum number of entries to examine. Default: unlimited. */
  readonly scanLimit?: number;
  /** Default: all entries. */
  readonly accepts?: (run: Partial<RunVersion>) => boolean;
}

export class Sequence {
  /** Placed entries, the earliest delivery first. */
  readonly placed: PlacedEntry[] = [];
  #nextOrder = placedLane;

  constructor(readonly generated: Timeline) {}

  /** Adds content at a delivery time, after other entries placed at that time. */
  place(at: number, content: Content): PlacedEntry {
    const entry: PlacedEntry = { at, order: this.#nextOrder++, content };
    this.placed.splice(this.#firstPlacedAfter(entry), 0, entry);
    return entry;
  }

  remove(entry: Place): void {
    const index = this.#firstPlacedAfter(entry) - 1;
    if (this.placed[index]?.order === entry.order) this.placed.splice(index, 1);
  }

  /** Returns entries after a place, and the place of the last examined one. */
  read({ from, nowMs, limit, scanLimit = Number.POSITIVE_INFINITY, accepts = () => true }: ReadRequest) {
    const lane = this.generated;
    const count = lane.countAt(nowMs);
    let number = lane.firstAfter(from, count);
    let index = this.#firstPlacedAfter(from);
    let end = from;
    const entries: Content[] = [];
    for (let looked = 0; entries.length < limit && looked < scanLimit; ) {
      const placed = this.placed[index];
      const generated = number < count ? { at: lane.deliveredAt(number), order: number } : null;
      const isPlaced = placed !== undefined && placed.at <= nowMs;
      if (isPlaced && (generated === null || comparePlaces(placed, generated) < 0)) {
        index++;
        looked++;
        end = placed;
        const { content } = placed;
        if (accepts('version' in content ? content.version : content.verbatim.fields)) entries.push(content);
      } else if (generated !== null) {
        number++;
        // Invisible runs do not move the cursor.
        if (!lane.isVisible(generated.order, nowMs)) continue;
        looked++;
        end = generated;
        const version = lane.version(generated.order);
        if (accepts(version)) entries.push({ version });
      } else break;
    }
    return { entries, end: { at: end.at, order: end.order } };
  }

  #firstPlacedAfter(place: Place): number {
    return search(this.placed.length, (index) => comparePlaces(this.placed[index] as PlacedEntry, place) > 0);
  }
}
