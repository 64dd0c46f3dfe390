import type { Failure } from '../../src/core/errors.js';

/** An error as the client throws it, and the store where it does not matter whose it is. */
export class ModelFailure extends Error implements Failure {
  constructor(
    readonly kind: string,
    readonly action: Failure['action'] = 'retry',
    readonly retryAfterMs?: number,
  ) {
    super(kind);
  }
}

/** An error as the store throws it. */
export class StoreFailure extends ModelFailure {
  readonly ofDatabase = true;
}
