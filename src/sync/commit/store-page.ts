import type { Clock } from '../../core/clock.js';
import { classifyError } from '../../core/errors.js';
import type { ReadSettings } from '../context.js';
import type { CheckedEntry, Loading } from '../page/check-entries.js';
import type { RecentCursors } from '../page/cursors.js';
import {
  type DeadEnd,
  findDeadEnd,
  findProgress,
  isEndOfFeed,
  isSecondLook,
  type Progress,
} from '../page/end-of-feed.js';
import type { CheckedPage } from '../page/page.js';
import type {
  CommitOutcome,
  EndClaim,
  FeedService,
  FeedStore,
  LeaseGrant,
  Reading,
  SyncObserver,
} from '../ports/index.js';
import type { RetryWakeUp } from '../results/retry-wake-up.js';
import { type Breaker, qualityOf, qualityOfNew } from './breaker.js';
import { commitWithoutRefused, type PageContent } from './quarantine-refused.js';

/** What follows a page. `fenced`: the lease was lost, or another position is stored. */
export type PageProgress = Progress | 'fenced';

/** The feed or the pass whose page is stored. */
export interface PageOwner {
  readonly reading: Reading;
  readonly service: Pick<FeedService, 'readPage'>;
  readonly store: Pick<FeedStore, 'notYetQuarantined' | 'tryEntries'>;
  readonly observer: Pick<SyncObserver, 'pageStored'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly read: Pick<ReadSettings, 'filters'>;
  readonly lease: LeaseGrant;
  readonly breaker: Breaker;
  readonly retryWakeUp: RetryWakeUp;
  /** Whether the page is known to be the last, whatever follows. */
  readonly isLast: boolean;
  /** The dead end that the previous page found. */
  readonly deadEnd: DeadEnd | null;
  readonly recentCursors: RecentCursors;
  /** The page before, if it is still being stored. */
  readonly before: Promise<PageResult> | null;
  /** Commits the content of a page and moves to a cursor, if the page was read from the stored position. */
  readonly commit: (content: PageContent, to: string | null, end: EndClaim) => Promise<CommitOutcome>;
  /** Called right after the commit of a page, before any further request. */
  readonly onCommitted: (outcome: Committed, entries: readonly CheckedEntry[]) => void;
}

type Committed = Extract<CommitOutcome, { kind: 'committed' }>;

export interface PageResult {
  readonly progress: PageProgress;
  readonly deadEnd: DeadEnd | null;
}

/**
 * Stores a page with its position. Returns what follows the page. Throws if the page before failed, unless this one was
 * committed.
 * @throws MostlyBad
 */
export async function storePage(page: CheckedPage, owner: PageOwner, signal: AbortSignal): Promise<PageResult> {
  const { isLast, service, store, lease, breaker, retryWakeUp, commit, onCommitted } = owner;
  const { filters } = owner.read;
  const { deadEnd: previous, recentCursors } = owner;
  const verdict = isLast ? 'end' : await isEndOfFeed(page, filters, service, signal);
  const probe = async () => (verdict === 'more' ? findDeadEnd(page, filters, service, signal) : null);
  // Storing a page does not depend on this request, unless its commit decides whether a dead end is the end of the feed.
  const probed = previous?.cursor === page.at.cursor ? probe() : null;
  const end = verdict === 'end' ? 'yes' : await endClaim(probed, previous);
  // If the service rejected the stored cursor, this page was requested from another position.
  const to = page.next ?? page.at.cursor;
  let quality = qualityOf(page, page.quarantine);
  const commitBegunAt = owner.clock.monotonic();
  const { outcome, entries } = await commitWithoutRefused(
    page,
    async (toStore) => {
      quality = await qualityOfNew(page, toStore.quarantine, lease.feed, store);
      breaker.check(quality);
      return commitOverlapping(owner.before, () => commit(toStore, to, end));
    },
    (batch) => store.tryEntries(lease, batch),
    signal,
  );
  if (outcome.kind === 'fenced') return { progress: 'fenced', deadEnd: null };
  const committedAt = owner.clock.monotonic();
  breaker.committed(quality);
  retryWakeUp.committed(entries);
  onCommitted(outcome, entries);
  const { reading, observer } = owner;
  observer.pageStored({ reading, polls: page.polls, commitBegunAt, committedAt, counts: outcome.counts });

  const deadEnd = await (probed ?? probe());
  const progress = findProgress(page, { verdict, deadEnd, isEnd: outcome.endClaimed, recentCursors });
  return { progress, deadEnd };
}

/** Returns what the commit of a page may claim. A failed request must not withhold its entries: the error is thrown after the commit. */
async function endClaim(probed: Promise<DeadEnd | null> | null, previous: DeadEnd | null): Promise<EndClaim> {
  try {
    return isSecondLook(await probed, previous) ? 'ifNothingNew' : 'no';
  } catch {
    return 'no';
  }
}

/**
 * Commits a page while the page before is being committed: PostgreSQL makes it wait. If it arrives first it is fenced, and
 * if PostgreSQL does not let it wait it fails; it is sent again after the other one. Settles after the page before. Throws
 * if the page before failed, unless this one was committed.
 */
async function commitOverlapping(
  before: Promise<PageResult> | null,
  commit: () => Promise<CommitOutcome>,
): Promise<CommitOutcome> {
  if (before === null) return commit();
  const [sent] = await Promise.allSettled([commit(), before]);
  if (sent.status === 'fulfilled' && sent.value.kind === 'committed') return sent.value;
  const { progress } = await before;
  if (progress === 'more' && (sent.status === 'fulfilled' || needsRepeat(sent.reason))) return commit();
  if (sent.status === 'rejected') throw sent.reason;
  return sent.value;
}

/** Kinds of errors that a commit may have only because another one runs: a lock, a time limit or no free connection. */
const CAUSED_BY_WAITING = new Set([
  'serialization',
  'deadlock',
  'lock_timeout',
  'cancelled',
  'resources',
  'pool_exhausted',
]);

/** Returns whether a commit was not executed, and may succeed alone. */
function needsRepeat(error: unknown): boolean {
  return CAUSED_BY_WAITING.has(classifyError(error).kind);
}

const LOADINGS: readonly Loading[] = ['resolved', 'pending', 'skipped'];

/** Reports the outcomes for the truncated entries among those that were committed. */
export function reportLoading(entries: readonly CheckedEntry[], observer: Pick<SyncObserver, 'truncated'>): void {
  for (const kind of LOADINGS) observer.truncated(kind, entries.filter(({ loading }) => loading === kind).length);
}
