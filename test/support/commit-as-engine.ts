import { systemClock } from '../../src/core/clock.js';
import type { CommitCounts } from '../../src/core/counts.js';
import type { CheckedPage } from '../../src/sync/page/page.js';
import type { FeedStore, LeaseGrant } from '../../src/sync/ports/index.js';
import { createBreaker } from '../../src/sync/writer/breaker.js';
import type { CommitPage } from '../../src/sync/writer/page-target.js';
import { storePage } from '../../src/sync/writer/store-page.js';
import { checkedPage } from './pages.js';
import { claimNothing, type StoreBench } from './store.js';

/** Commits a page as the engine does: entries that PostgreSQL refuses go to quarantine. */
export async function commitAsEngine(bench: StoreBench, body: string | Uint8Array, to: string): Promise<CommitCounts> {
  const { lease } = await bench.takeFeed();
  const { cursor } = await bench.store.readPosition(lease.feed);
  const page = await storeAlone(checkedPage(body), bench.store, lease, (content) =>
    bench.store.commitPage({ lease, from: cursor, to, freshness: claimNothing(), ...content }),
  );
  if (page.kind === 'fenced') throw new Error('fenced');
  return page.counts;
}

/** Stores a page as the engine does, by this commit. */
export function storeAlone(page: CheckedPage, store: FeedStore, lease: LeaseGrant, commit: CommitPage) {
  const target = { lease, store, breaker: createBreaker(), maxJoined: 1, maxCommits: 1, onStep: () => {} };
  const alone = (send: () => ReturnType<CommitPage>) => send();
  return storePage(page, { ...target, prepare: () => commit }, alone, systemClock, new AbortController().signal);
}
