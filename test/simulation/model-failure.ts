import type { Failure } from '../../src/core/errors.js';

/** An error as the client and the store throw them. */
export class ModelFailure extends Error implements Failure {
  constructor(
    readonly kind: string,
    readonly action: Failure['action'] = 'retry',
    readonly retryAfterMs?: number,
  ) {
    super(kind);
  }
}
