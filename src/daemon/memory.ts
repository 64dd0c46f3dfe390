import { heapBytes } from '../core/heap-bytes.js';
import { createMemoryBudget, type MemoryBudget } from '../sync/memory/memory-budget.js';
import { LARGEST_ENTRY_BYTES } from '../sync/page/page-limit.js';

const MIB = 1024 * 1024;

/** Number of released bytes that triggers a garbage collection, which takes a few milliseconds. */
const COLLECT_EVERY_BYTES = 16 * MIB;

/**
 * Size of a released body above which a garbage collection follows at once, bytes. Ordinary pages are smaller, and one of 12 MB
 * with a million values may have taken 100 MB.
 */
const LARGE_BODY_BYTES = 8 * MIB;

/**
 * Time without such a collection after which a last one returns unused pages to the system, milliseconds: a process that has read
 * the histories of a thousand feeds needs much less from then on.
 */
const FINAL_COLLECTION_DELAY_MS = 60_000;

const USUAL = { type: 'major', execution: 'sync', flavor: 'regular' } as const;
/** Also returns the pages that V8 keeps for new objects to the system. */
const THOROUGH = { type: 'major', execution: 'sync', flavor: 'last-resort' } as const;

/** Collects garbage as `globalThis.gc` does. */
export type Collect = (options: typeof USUAL | typeof THOROUGH) => void;

/** Memory of the process that is not available for one response, bytes. */
const RESERVED_BYTES = 220 * MIB;

/**
 * Returns the size of the largest response that the process has memory for, bytes: 60 MiB in a container of 256 MiB. The size of
 * the heap shows how much memory there is: half of the container and three semi-spaces of 4 MiB in the image, some gigabytes where
 * nothing is set.
 */
export function largestAnswerBytes(heapLimit: number = heapBytes()): number {
  return Math.min(LARGEST_ENTRY_BYTES, Math.max(16 * MIB, Math.floor(2 * heapLimit) - RESERVED_BYTES));
}

/**
 * Creates the memory budget of the process. Released bytes are collected soon: V8 counts buffers outside its heap, but collects
 * them late, so they would still use memory while the next ones are loaded.
 * @param collect V8's garbage collector, available if Node was started with `--expose-gc` (the image's entry point does
 * so). Without it the process needs more memory (docs/decisions/0009).
 */
export function createProcessBudget(
  bytes: number,
  collect: Collect | undefined = globalThis.gc as Collect | undefined,
): MemoryBudget {
  if (collect === undefined) return createMemoryBudget(bytes);
  let uncollected = 0;
  let finalCollection: NodeJS.Timeout | undefined;
  return createMemoryBudget(bytes, (released) => {
    const large = released >= LARGE_BODY_BYTES;
    uncollected += released;
    if (uncollected < COLLECT_EVERY_BYTES && !large) return;
    uncollected = 0;
    // Nothing refers to the released bytes by then.
    setImmediate(collect, large ? THOROUGH : USUAL);
    clearTimeout(finalCollection);
    finalCollection = setTimeout(collect, FINAL_COLLECTION_DELAY_MS, THOROUGH).unref();
  });
}
