import type { FilterFacts, RunVersion } from './runs.js';

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

export const placedLane = 2 ** 33;
export const beginning: Place = { at: Number.MIN_SAFE_INTEGER, order: -1 };

/** Returns the place before all entries delivered at or after `at`. */
export const beforeTime = (at: number): Place => ({ at, order: -1 });
/** Returns the place after all entries delivered up to `at`. */
export const behindTime = (at: number): Place => ({ at, order: Number.MAX_SAFE_INTEGER });

export const comparePlaces = (a: Place, b: Place): number => a.at - b.at || a.order - b.order;

/** A run, or an entry that is sent byte for byte; facts that it lacks pass every filter. */
export type Content =
  | {
      /** The run. */
      readonly version: RunVersion;
    }
  | {
      /** The bytes, and the facts that filters compare. */
      readonly verbatim: { readonly text: string | Uint8Array; readonly facts: Partial<FilterFacts> };
    };

export interface PlacedEntry extends Place {
  readonly content: Content;
}

export interface ReadRequest {
  readonly from: Place;
  readonly nowMs: number;
  readonly limit: number;
  /** Maximum number of entries to examine. */
  readonly scanLimit: number;
  readonly accepts: (facts: Partial<FilterFacts>) => boolean;
}

export interface ReadResult {
  readonly entries: readonly Content[];
  /** Place of the last examined entry; `from` if there was none. */
  readonly end: Place;
}

/** The generated runs, which are computed from their number. */
export interface GeneratedLane {
  countAt(nowMs: number): number;
  /** The number of the first run after this place, among the first `count`. */
  firstAfter(place: Place, count: number): number;
  deliveredAt(number: number): number;
  /** Returns false while the run is late, or if its entry was removed. */
  visible(number: number, nowMs: number): boolean;
  facts(number: number): FilterFacts;
  version(number: number): RunVersion;
}

export class Sequence {
  /** Placed entries, the earliest delivery first. */
  readonly placed: PlacedEntry[] = [];
  #nextOrder = placedLane;

  constructor(readonly generated: GeneratedLane) {}

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

  read(request: ReadRequest): ReadResult {
    const lane = this.generated;
    const count = lane.countAt(request.nowMs);
    let number = lane.firstAfter(request.from, count);
    let index = this.#firstPlacedAfter(request.from);
    let end = request.from;
    const entries: Content[] = [];
    for (let looked = 0; entries.length < request.limit && looked < request.scanLimit; ) {
      const placed = this.placed[index];
      const generated = number < count ? { at: lane.deliveredAt(number), order: number } : null;
      if (
        placed !== undefined &&
        placed.at <= request.nowMs &&
        (generated === null || comparePlaces(placed, generated) < 0)
      ) {
        index++;
        looked++;
        end = placed;
        if (request.accepts(factsOfContent(placed.content))) entries.push(placed.content);
      } else if (generated !== null) {
        number++;
        // Invisible runs do not move the cursor.
        if (!lane.visible(generated.order, request.nowMs)) continue;
        looked++;
        end = generated;
        if (request.accepts(lane.facts(generated.order))) entries.push({ version: lane.version(generated.order) });
      } else break;
    }
    return { entries, end: { at: end.at, order: end.order } };
  }

  #firstPlacedAfter(place: Place): number {
    let low = 0;
    let high = this.placed.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (comparePlaces(this.placed[middle] as PlacedEntry, place) > 0) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function factsOfContent(content: Content): Partial<FilterFacts> {
  if ('verbatim' in content) return content.verbatim.facts;
  const { status, environment, documentType } = content.version;
  return { status, environment, documentType: documentType.slug };
}
