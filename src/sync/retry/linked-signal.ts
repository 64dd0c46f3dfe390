import { setMaxListeners } from 'node:events';

/**
 * A controller that also aborts with each of these signals, until it is unlinked. `AbortSignal.any` would do, but on Node 20
 * a long-lived signal never lets go of what was made from it.
 */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  abort(): void;
  /** To be called when the work is over. */
  unlink(): void;
}

export function linkedSignal(...sources: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal); // everything under way listens, and a page may have two hundred results
  const abort = () => controller.abort();
  for (const source of sources) {
    if (source.aborted) abort();
    else source.addEventListener('abort', abort, { once: true });
  }
  return {
    signal: controller.signal,
    abort,
    unlink: () => {
      for (const source of sources) source.removeEventListener('abort', abort);
    },
  };
}
