/** Sizes of a feed's latest results, by which memory is reserved for the next ones. */
export interface ResultSizes {
  /** Size of the largest of them, bytes; null: none is known. */
  readonly largest: number | null;
  add(bytes: number): void;
}

/** Number of results to remember. */
const REMEMBERED = 8;

export function createResultSizes(): ResultSizes {
  const sizes: number[] = [];
  return {
    get largest() {
      return sizes.length === 0 ? null : Math.max(...sizes);
    },
    add: (bytes) => {
      sizes.push(bytes);
      if (sizes.length > REMEMBERED) sizes.shift();
    },
  };
}
