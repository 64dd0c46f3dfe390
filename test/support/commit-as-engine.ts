import type { CommitCounts } from '../../src/core/counts.js';
import { commitWithoutRefused } from '../../src/sync/commit/quarantine-refused.js';
import { checkEntries } from '../../src/sync/page/check-entries.js';
import { rawPage } from './pages.js';
import { claimNothing, type StoreBench } from './store.js';

/** Commits a page as the engine does: entries that PostgreSQL refuses go to quarantine. */
export async function commitAsEngine(bench: StoreBench, body: string | Uint8Array, to: string): Promise<CommitCounts> {
  const { lease } = await bench.takeFeed();
  const { cursor } = await bench.store.readPosition(lease.feed);
  const checked = checkEntries(rawPage(body));
  const { outcome } = await commitWithoutRefused(
    checked,
    (content) => bench.store.commitPage({ lease, from: cursor, to, freshness: claimNothing(), ...content }),
    (batch) => bench.store.tryEntries(lease, batch),
    new AbortController().signal,
  );
  if (outcome.kind === 'fenced') throw new Error('fenced');
  return outcome.counts;
}
