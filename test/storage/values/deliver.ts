import type { CommitCounts } from '../../../src/core/counts.js';
import { commitAsEngine } from '../../support/commit-as-engine.js';
import type { StoreSetup } from '../../support/store.js';
import { cases } from '../../support/thorough.js';

/** Number of cases per property. */
export const CASES = cases(250, 10_000);
/** Number of cases per page, since a commit costs more than a case. */
export const CASES_A_PAGE = 50;
export const PAGES = { numRuns: Math.ceil(CASES / CASES_A_PAGE), endOnFailure: false } as const;

let pages = 0;

/** Stores a page like the engine, including the values that PostgreSQL refuses. */
export function deliver(setup: StoreSetup, body: string | Uint8Array): Promise<CommitCounts> {
  pages += 1;
  return commitAsEngine(setup, body, `page ${pages}`);
}
