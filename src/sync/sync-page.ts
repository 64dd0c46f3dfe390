import { type Breaker, qualityOf, qualityOfNew } from './breaker.js';
import { commitPage } from './commit-page.js';
import { type DeadEnd, type EndVerdict, findDeadEnd, isDeadEnd, isEndAfterCommit, isEndOfFeed } from './end-of-feed.js';
import type { DraftEntry } from './page-draft.js';
import type { CommitOutcome, FeedFilters, FeedService, FeedStore, LeaseGrant, SyncObserver } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import { freshnessOf } from './read-page.js';
import { reportLoading } from './report-loading.js';
import type { RetryWakeUp } from './retry-wake-up.js';

/** What a page needs to become rows. */
export interface PageContext {
  readonly service: FeedService;
  readonly store: FeedStore;
  readonly observer: SyncObserver;
  readonly filters: FeedFilters;
  readonly lease: LeaseGrant;
  readonly breaker: Breaker;
  readonly stepMs: number;
  readonly retryWakeUp: RetryWakeUp;
  /** Where the page before led nowhere. */
  readonly deadEnd: DeadEnd | null;
}

/**
 * Where a page leaves the feed. `fenced`: another process has it. `stuck`: the cursor leads nowhere. `unclear`: perhaps it
 * is the end; the next poll decides.
 */
export type Progress = EndVerdict | 'stuck' | 'fenced';

/** Where a page left the feed, and whether it led nowhere. */
export interface SyncedPage {
  readonly progress: Progress;
  readonly deadEnd: DeadEnd | null;
}

/**
 * One page, fetched and completed ahead: is it the end, commit it with its cursor, tell what happened.
 */
export async function syncPage(page: CompletedPage, context: PageContext, signal: AbortSignal): Promise<SyncedPage> {
  const { service, store, observer, filters, lease, breaker, stepMs, retryWakeUp } = context;
  const { at, next, draft } = page;

  const verdict = await isEndOfFeed(page, filters, service, signal);
  const position = { lease, from: at.cursor, to: next ?? at.cursor };
  const freshness = freshnessOf(page, verdict === 'end');
  let quality = qualityOf(draft, draft.quarantine);
  const { outcome, entries, content } = await commitPage(
    page,
    async (toStore) => {
      observer.ticked(stepMs);
      quality = await qualityOfNew(draft, toStore.quarantine, lease.feed, store);
      breaker.check(quality);
      return store.commitPage({ ...position, freshness, ...toStore });
    },
    (batch) => {
      observer.ticked(stepMs);
      return store.tryEntries(lease, batch);
    },
    signal,
  );
  if (outcome.kind === 'fenced') return { progress: 'fenced', deadEnd: null };
  breaker.committed(quality);
  report(entries, page, outcome, observer);
  retryWakeUp.committed(entries);

  // After the commit: what is stored does not depend on another request.
  const deadEnd = verdict === 'more' ? await findDeadEnd(page, filters, service, signal) : null;
  if (!isEndAfterCommit(deadEnd, context.deadEnd, outcome.counts)) {
    return { progress: progressAfter(page, verdict, deadEnd), deadEnd };
  }
  // The database may have lost the first commit (a failover). The cursor did not move, so the fence does not notice: the claim
  // is committed with the entries that it rests on.
  const end = await store.commitPage({ ...position, ...content, freshness: freshnessOf(page, true) });
  if (end.kind === 'fenced') return { progress: 'fenced', deadEnd: null };
  observer.freshness(end.asOf);
  return { progress: 'end', deadEnd };
}

function progressAfter(page: CompletedPage, verdict: EndVerdict, deadEnd: DeadEnd | null): Progress {
  if (verdict !== 'more') return verdict;
  if (deadEnd !== null && deadEnd.isShort !== false) return 'unclear';
  return isDeadEnd(page) ? 'stuck' : 'more';
}

function report(
  entries: readonly DraftEntry[],
  page: CompletedPage,
  outcome: Extract<CommitOutcome, { kind: 'committed' }>,
  observer: SyncObserver,
) {
  const stored = new Set(outcome.counts.stored);
  const deliveries = entries.flatMap(({ accepted: { run } }) =>
    stored.has(run.scanId) && run.deliveredAt !== null ? [page.instantOf(run.deliveredAt)] : [],
  );
  observer.committed(outcome.counts, deliveries);
  observer.freshness(outcome.asOf);
  reportLoading(entries, observer);
}
