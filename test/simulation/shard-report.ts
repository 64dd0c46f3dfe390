import type { Coverage } from './coverage.js';

/** What a process reports of a batch of seeds; after a failure it has left the rest of the batch. */
export interface ShardReport {
  readonly coverage: Coverage;
  readonly failure: { readonly seed: number; readonly message: string } | null;
}
