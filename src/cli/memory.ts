import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type ByteBudget, createByteBudget } from '../sync/byte-budget.js';

/** So many bytes of pages and results are worth the few milliseconds of collecting them. */
const COLLECT_EVERY_BYTES = 32 * 1024 * 1024;

/**
 * Has V8 prefer a small heap to a fast program, from now on. Node 24 sizes the young generation by the machine's memory:
 * a daemon that only passes pages on would take twice as much, and is no sooner done (docs/decisions/0009).
 */
export function keepHeapSmall(): void {
  setFlagsFromString('--optimize-for-size');
}

/**
 * A budget whose bytes are free again soon after they were given back: V8 counts what lies outside its heap, but comes
 * late for it, and what nobody needs would be held beside what is loaded next.
 */
export function openByteBudget(bytes: number): ByteBudget {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let given = 0;
  return createByteBudget(bytes, (released) => {
    given += released;
    if (given < COLLECT_EVERY_BYTES) return;
    given = 0;
    setImmediate(collect); // whoever gave it back has let go of it by then
  });
}
