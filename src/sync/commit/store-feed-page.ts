import type { LeaderContext } from '../context.js';
import type { CheckedEntry } from '../page/check-entries.js';
import type { FreshnessClaims } from '../page/freshness-claims.js';
import type { CheckedPage } from '../page/page.js';
import type { CommitOutcome, FeedStore } from '../ports/index.js';
import { type PageOwner, type PageResult, reportLoading, storePage } from './store-page.js';

/** The parts of the engine that storing a page of the feed needs. */
export interface PageContext
  extends Pick<
      LeaderContext,
      'service' | 'store' | 'leases' | 'leaseTtlMs' | 'observer' | 'clock' | 'read' | 'stepMs' | 'retryWakeUp'
    >,
    Pick<PageOwner, 'lease' | 'breaker' | 'deadEnd' | 'recentCursors' | 'before'> {
  readonly claims: FreshnessClaims;
}

/** Stores one page of the feed with its cursor and what it proves about freshness, and reports it. */
export function storeFeedPage(page: CheckedPage, context: PageContext, signal: AbortSignal): Promise<PageResult> {
  const { store, leases, leaseTtlMs, observer, stepMs, lease } = context;
  const claim = context.claims.next(page);
  const tryEntries: FeedStore['tryEntries'] = (...given) => {
    observer.ticked(stepMs);
    return store.tryEntries(...given);
  };
  return storePage(
    page,
    {
      ...context,
      reading: 'feed',
      isLast: false,
      store: { tryEntries, notYetQuarantined: store.notYetQuarantined },
      commit: async (content, to, end) => {
        observer.ticked(stepMs);
        const freshness = { end, ...claim };
        const outcome = await store.commitPage({ lease, from: page.at.cursor, to, freshness, ...content });
        if (outcome.kind === 'fenced') return outcome;
        leases.extended(lease, outcome.asOf.readAt);
        observer.leading(outcome.asOf.readAt + leaseTtlMs);
        return outcome;
      },
      onCommitted: (outcome, entries) => report(outcome, entries, page, context),
    },
    signal,
  );
}

function report(
  { counts, asOf }: Extract<CommitOutcome, { kind: 'committed' }>,
  entries: readonly CheckedEntry[],
  page: CheckedPage,
  { observer }: PageContext,
): void {
  const stored = new Set(counts.stored);
  const deliveries = entries.flatMap(({ accepted: { run } }) =>
    stored.has(run.scanId) && run.deliveredAt !== null ? [page.monotonicTimeOf(run.deliveredAt)] : [],
  );
  observer.committed(counts, deliveries);
  observer.freshness(asOf);
  reportLoading(entries, observer);
}
