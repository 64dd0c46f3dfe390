import { setMaxListeners } from 'node:events';
import { WAIT_OVER } from '../../core/clock.js';

/**
 * Creates a controller that also aborts when one of its source signals does, until it is unlinked. `AbortSignal.any` is not used
 * because on Node 20 a long-lived signal keeps all derived signals in memory.
 */
export function linkedSignal(...sources: readonly AbortSignal[]) {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal); // every running request listens, and a page may have two hundred results
  const abort = () => controller.abort(WAIT_OVER);
  for (const source of sources) {
    if (source.aborted) abort();
    else source.addEventListener('abort', abort, { once: true });
  }
  const signal: AbortSignal = controller.signal;
  return {
    signal,
    abort,
    /** Stops listening to the source signals. Call it when the work is done. */
    unlink: (): void => {
      for (const source of sources) source.removeEventListener('abort', abort);
    },
  };
}
