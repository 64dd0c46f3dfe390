import { systemClock } from '../../src/core/clock.js';
import type { CommitCounts } from '../../src/core/counts.js';
import type { CheckedPage, CommittedPage } from '../../src/sync/page/page.js';
import type { FeedStore, Fenced, LeaseGrant } from '../../src/sync/ports/index.js';
import { Breaker } from '../../src/sync/writer/breaker.js';
import { PageWriter } from '../../src/sync/writer/write-pages.js';
import { checkedPage } from './pages.js';
import { claimNothing, type StoreSetup } from './store.js';

/** Commits a page as the engine does: entries that PostgreSQL refuses go to quarantine. */
export async function commitAsEngine(setup: StoreSetup, body: string | Uint8Array, to: string): Promise<CommitCounts> {
  const { lease } = await setup.takeFeed();
  const page = await storeAlone(checkedPage(body), setup.store, lease, to);
  if (page.kind === 'fenced') throw new Error('fenced');
  return page.counts;
}

/** Stores a page as the engine does, and moves the cursor. */
export async function storeAlone(
  page: CheckedPage,
  store: FeedStore,
  lease: LeaseGrant,
  to: string | null,
): Promise<CommittedPage | Fenced> {
  const { cursor: from } = await store.readPosition(lease.feed);
  const pages = [page];
  const source = { isStopped: () => false, stop: () => {}, take: async () => pages.shift() ?? null };
  const moveBy = () => ({ lease, from, to, freshness: claimNothing() });
  const target = { lease, breaker: new Breaker(), maxCommits: 1, moveBy };
  const writer = new PageWriter(source, target, { store, clock: systemClock }, new AbortController().signal);
  const { value } = await writer.write().next();
  if (value === undefined) throw new Error('nothing was stored');
  return value;
}
