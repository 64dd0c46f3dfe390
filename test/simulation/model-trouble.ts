import type { Trouble } from '../../src/sync/ports.js';

/** An error as the client and the store throw them. */
export class ModelTrouble extends Error implements Trouble {
  constructor(
    readonly kind: string,
    readonly remedy: Trouble['remedy'] = 'retry',
    readonly retryAfterMs?: number,
  ) {
    super(kind);
  }
}
