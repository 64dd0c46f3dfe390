import type { Trouble } from '../sync/ports.js';

/** What an error means to the engine. One that does not say so itself is a bug of ours: it is retried, and counted as such. */
export function troubleOf(error: unknown): Trouble {
  if (isTrouble(error)) return error;
  return { kind: 'internal', remedy: 'retry' };
}

function isTrouble(error: unknown): error is Trouble {
  const { kind, remedy } = (error ?? {}) as Partial<Trouble>;
  return typeof kind === 'string' && (remedy === 'retry' || remedy === 'hold' || remedy === 'data');
}
