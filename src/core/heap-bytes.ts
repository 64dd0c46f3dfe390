import { getHeapStatistics } from 'node:v8';

/** Part of the heap limit of V8 for new objects: three semi-spaces of 4 MiB in the image, bytes. */
const YOUNG_GENERATION_BYTES = 12 * 1024 * 1024;

/**
 * Returns the size to which the heap may grow, bytes: the limit of V8, or half of the container if V8 has a higher one, since
 * the rest is needed for data outside the heap.
 * @param constrained the memory of the container; 0 or huge if it has no limit
 */
export function heapBytes(
  limit: number = getHeapStatistics().heap_size_limit,
  constrained: number = process.constrainedMemory(),
): number {
  return constrained > 0 ? Math.min(limit, constrained / 2 + YOUNG_GENERATION_BYTES) : limit;
}
