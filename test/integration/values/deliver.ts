import { commitPage } from '../../../src/sync/commit-page.js';
import { draftPage } from '../../../src/sync/page-draft.js';
import type { CommitCounts } from '../../../src/sync/ports.js';
import { rawPage } from '../../support/pages.js';
import type { StoreBench } from '../../support/store.js';

/** How many cases a property tries. More where nobody waits for them. */
export const CASES = Number(process.env.PROPERTY_CASES ?? (process.env.CI ? 10_000 : 1_000));
/** Cases that share a page, since a commit costs more than a case. */
export const CASES_A_PAGE = 50;
export const PAGES = { numRuns: Math.ceil(CASES / CASES_A_PAGE), endOnFailure: false } as const;

/** Limit of a test of many cases or very large values, milliseconds: only ends what hangs, leaves time to shrink. */
export const PATIENCE = 600_000;

let pages = 0;

/** Stores a page as the engine does, whatever PostgreSQL says to it. */
export async function deliver(bench: StoreBench, body: string | Uint8Array): Promise<CommitCounts> {
  const { lease } = await bench.takeFeed();
  const { cursor } = await bench.store.readPosition(lease.feed);
  pages += 1;
  const to = `page ${pages}`;
  const page = rawPage(body);
  const draft = draftPage(page);
  const { outcome } = await commitPage(
    { draft, completed: draft.entries },
    (content) => bench.store.commitPage({ lease, from: cursor, to, freshness: null, ...content }),
    (batch) => bench.store.tryEntries(lease, batch),
    new AbortController().signal,
  );
  if (outcome.kind === 'fenced') throw new Error('fenced');
  return outcome.counts;
}
