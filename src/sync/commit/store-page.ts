import type { CheckedEntry, Loading } from '../page/check-page.js';
import { type DeadEnd, findProgress, isEndOfFeed, type Progress } from '../page/end-of-feed.js';
import type { RecentCursors } from '../page/recent-cursors.js';
import type { CommitOutcome, FeedFilters, FeedService, FeedStore, LeaseGrant, SyncObserver } from '../ports/index.js';
import type { CompletedPage } from '../prefetch/completed-page.js';
import type { RetryWakeUp } from '../results/retry-wake-up.js';
import { type Breaker, qualityOf, qualityOfNew } from '../retry/breaker.js';
import { commitWithoutRefused, type PageContent } from './quarantine-refused.js';

/** Where a page leads. `fenced`: the lease was lost, or another position is stored. */
export type PageProgress = Progress | 'fenced';

/** A commit of a page. */
export interface PageMove {
  /** The position that has to be stored, and the one that is stored with the page. */
  readonly from: string | null;
  readonly to: string | null;
  /** Whether the page is the end, so that what it proves may be claimed. */
  readonly atEnd: boolean;
  /** Whether the page was committed before, and is now known to be the end. */
  readonly again: boolean;
}

/** The feed or the pass whose page is stored. */
export interface Reader {
  readonly service: Pick<FeedService, 'readPage'>;
  readonly store: Pick<FeedStore, 'notYetQuarantined' | 'tryEntries'>;
  readonly filters: FeedFilters;
  readonly lease: LeaseGrant;
  readonly breaker: Breaker;
  readonly retryWakeUp: RetryWakeUp;
  /** The position that is stored. */
  readonly stored: string | null;
  /** Where the page before led nowhere. */
  readonly deadEnd: DeadEnd | null;
  readonly recent: RecentCursors;
  /** Commits the content of a page with its position. */
  readonly commit: (content: PageContent, move: PageMove) => Promise<CommitOutcome>;
  /** Called right after the commit of a page, before any further request. */
  readonly onCommitted: (outcome: Committed, entries: readonly CheckedEntry[]) => void;
}

type Committed = Extract<CommitOutcome, { kind: 'committed' }>;

export interface StoredPage {
  readonly progress: PageProgress;
  readonly deadEnd: DeadEnd | null;
}

/**
 * Stores a page with its position. Returns where the page leads.
 * @param isLast whether it is known to be the last page, whatever follows
 * @throws MostlyBad
 */
export async function storePage(
  page: CompletedPage,
  isLast: boolean,
  reader: Reader,
  signal: AbortSignal,
): Promise<StoredPage> {
  const { service, store, filters, lease, breaker, retryWakeUp, stored, commit, onCommitted } = reader;
  const verdict = isLast ? 'end' : await isEndOfFeed(page, filters, service, signal);
  // The stored cursor may be rejected: then this page was requested from another position.
  const to = page.next ?? page.at.cursor;
  let quality = qualityOf(page.checked, page.checked.quarantine);
  const { outcome, entries, content } = await commitWithoutRefused(
    page,
    async (toStore) => {
      quality = await qualityOfNew(page.checked, toStore.quarantine, lease.feed, store);
      breaker.check(quality);
      return commit(toStore, { from: stored, to, atEnd: verdict === 'end', again: false });
    },
    (batch) => store.tryEntries(lease, batch),
    signal,
  );
  if (outcome.kind === 'fenced') return { progress: 'fenced', deadEnd: null };
  breaker.committed(quality);
  retryWakeUp.committed(entries);
  onCommitted(outcome, entries);

  // After the commit: what is stored does not depend on another request.
  const { inserted, updated } = outcome.counts;
  const { deadEnd: before, recent } = reader;
  const brought = { verdict, before, bringsNew: inserted + updated > 0, recent };
  const reached = await findProgress(page, brought, filters, service, signal);
  if (reached.progress !== 'end' || verdict === 'end') return reached;
  // The database may have lost the first commit (a failover). The cursor did not move, so the fence does not notice: the
  // claim is committed with the entries that it rests on.
  const end = await commit(content, { from: to, to, atEnd: true, again: true });
  return end.kind === 'fenced' ? { ...reached, progress: 'fenced' } : reached;
}

const LOADINGS: readonly Loading[] = ['resolved', 'pending', 'skipped'];

/** Reports the outcomes for the truncated entries among those that were committed. */
export function reportLoading(entries: readonly CheckedEntry[], observer: Pick<SyncObserver, 'truncated'>): void {
  for (const kind of LOADINGS) observer.truncated(kind, entries.filter(({ loading }) => loading === kind).length);
}
