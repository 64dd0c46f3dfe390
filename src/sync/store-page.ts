import { type Breaker, qualityOf, qualityOfNew } from './breaker.js';
import { type DeadEnd, findDeadEnd, isDeadEnd, isEndAfterCommit, isEndOfFeed } from './end-of-feed.js';
import type { DraftEntry } from './page-draft.js';
import type { CommitOutcome, FeedFilters, FeedService, FeedStore, LeaseGrant } from './ports.js';
import { commitWithoutRefused, type PageContent } from './quarantine-refused.js';
import type { CompletedPage } from './read-ahead.js';
import type { RetryWakeUp } from './retry-wake-up.js';

/**
 * Where a page leaves what is being read. `unclear`: perhaps this is the end; the same position, asked again later, decides.
 * `stuck`: its cursor leads nowhere. `fenced`: the lease was lost, or another position is stored.
 */
export type PageProgress = 'end' | 'more' | 'unclear' | 'stuck' | 'fenced';

/** A commit of a page. */
export interface PageMove {
  /** The position that has to be stored, and the one that is stored with the page. */
  readonly from: string | null;
  readonly to: string | null;
  /** The page is the end: what it proves may be claimed. */
  readonly atEnd: boolean;
  /** The page was committed before; now it is known to be the end. */
  readonly again: boolean;
}

/** What is being read: the feed or a pass. */
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
  /** Commits what is stored of a page with its position. */
  readonly commit: (content: PageContent, move: PageMove) => Promise<CommitOutcome>;
  /** Told of a page that was committed, before anything else is asked. */
  readonly onCommitted: (outcome: Committed, entries: readonly DraftEntry[]) => void;
}

type Committed = Extract<CommitOutcome, { kind: 'committed' }>;

export interface StoredPage {
  readonly progress: PageProgress;
  readonly deadEnd: DeadEnd | null;
}

/**
 * Stores a page with its position, and tells where that leaves what is being read.
 * @param isLast it is known to be the last page, whatever follows
 * @throws MostlyBad
 */
export async function storePage(
  page: CompletedPage,
  isLast: boolean,
  { service, store, filters, lease, breaker, retryWakeUp, stored, deadEnd: before, commit, onCommitted }: Reader,
  signal: AbortSignal,
): Promise<StoredPage> {
  const verdict = isLast ? 'end' : await isEndOfFeed(page, filters, service, signal);
  // The stored cursor may be rejected: then this page was requested from another position.
  const to = page.next ?? page.at.cursor;
  let quality = qualityOf(page.draft, page.draft.quarantine);
  const { outcome, entries, content } = await commitWithoutRefused(
    page,
    async (toStore) => {
      quality = await qualityOfNew(page.draft, toStore.quarantine, lease.feed, store);
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
  const deadEnd = verdict === 'more' ? await findDeadEnd(page, filters, service, signal) : null;
  if (isEndAfterCommit(deadEnd, before, outcome.counts)) {
    // The database may have lost the first commit (a failover). The cursor did not move, so the fence does not notice: the
    // claim is committed with the entries that it rests on.
    const end = await commit(content, { from: to, to, atEnd: true, again: true });
    return { progress: end.kind === 'fenced' ? 'fenced' : 'end', deadEnd };
  }
  if (verdict !== 'more') return { progress: verdict, deadEnd };
  if (deadEnd !== null && deadEnd.isShort !== false) return { progress: 'unclear', deadEnd };
  return { progress: isDeadEnd(page) ? 'stuck' : 'more', deadEnd };
}
