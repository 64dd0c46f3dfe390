import { getHeapStatistics } from 'node:v8';
import { type ByteBudget, createByteBudget } from '../sync/byte-budget.js';
import { LARGEST_ENTRY_BYTES } from '../sync/page-limit.js';

const MIB = 1024 * 1024;

/** So many bytes of pages and results are worth the few milliseconds of collecting them. */
const COLLECT_EVERY_BYTES = 32 * MIB;

/** Memory of the process that is not available for one answer, bytes. */
const RESERVED_BYTES = 220 * MIB;

/**
 * Returns the size of the largest answer that the process has memory for, bytes: 60 MiB in a container of 256 MiB. The heap
 * limit of V8 shows how much memory there is: half of the container in the image, some gigabytes where nothing is set.
 */
export function largestAnswerBytes(heapLimit: number = getHeapStatistics().heap_size_limit): number {
  return Math.min(LARGEST_ENTRY_BYTES, Math.max(16 * MIB, Math.floor(2 * heapLimit) - RESERVED_BYTES));
}

/**
 * A budget whose bytes are free again soon after they were given back: V8 counts what lies outside its heap, but comes
 * late for it, and what nobody needs would be held beside what is loaded next.
 * @param collect V8's own, there where Node was started with `--expose-gc` (the image's entry point does so); without it
 * some more is held (docs/decisions/0009)
 */
export function openByteBudget(bytes: number, collect: (() => void) | undefined = globalThis.gc): ByteBudget {
  if (collect === undefined) return createByteBudget(bytes);
  let given = 0;
  return createByteBudget(bytes, (released) => {
    given += released;
    if (given < COLLECT_EVERY_BYTES) return;
    given = 0;
    setImmediate(collect); // whoever gave it back has let go of it by then
  });
}
