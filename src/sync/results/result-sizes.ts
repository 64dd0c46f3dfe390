export type ResultSizes = ReturnType<typeof createResultSizes>;

/** Number of results to remember. */
const REMEMBERED = 8;

/** Keeps the sizes of a feed's latest results, by which memory is reserved for the next ones. */
export function createResultSizes() {
  const sizes: number[] = [];
  return {
    /** Size of the largest of them, bytes; null: none is known. */
    get largest(): number | null {
      return sizes.length === 0 ? null : Math.max(...sizes);
    },
    add: (bytes: number): void => {
      sizes.push(bytes);
      if (sizes.length > REMEMBERED) sizes.shift();
    },
  };
}
