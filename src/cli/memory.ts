import { type ByteBudget, createByteBudget } from '../sync/byte-budget.js';

/** So many bytes of pages and results are worth the few milliseconds of collecting them. */
const COLLECT_EVERY_BYTES = 32 * 1024 * 1024;

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
