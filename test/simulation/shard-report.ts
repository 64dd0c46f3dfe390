import type { Coverage } from './coverage.js';

/** Report of a process on a batch of seeds. A failure ends the batch. */
export interface ShardReport {
  readonly coverage: Coverage;
  readonly failure: { readonly seed: number; readonly message: string } | null;
}
