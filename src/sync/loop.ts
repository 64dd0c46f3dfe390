import { pauseAfter } from './backoff.js';
import type {
  Clock,
  FeedIdentity,
  FeedService,
  FeedStore,
  LeaseGrant,
  PollOutcome,
  Position,
  SyncObserver,
} from './ports.js';
import { type CompletedPage, type ReadAhead, readAhead } from './read-ahead.js';
import { type ReadSettings, readPage } from './read-page.js';
import { createRecentCursors, type RecentCursors } from './recent-cursors.js';
import type { ResultLoader } from './resolve-truncated.js';
import { type Progress, syncPage } from './sync-page.js';
import { troubleOf } from './trouble.js';

/** Everything the engine works with. */
export interface LoopContext {
  readonly service: FeedService;
  readonly store: FeedStore;
  readonly observer: SyncObserver;
  readonly clock: Clock;
  readonly loader: ResultLoader;
  /** Resolves once the schema can be worked on; rejects while it cannot. */
  readonly ready: (signal: AbortSignal) => Promise<void>;
  readonly identity: FeedIdentity;
  /** Names this process among those that may hold the feed. */
  readonly holder: string;
  readonly leaseTtlMs: number;
  readonly read: ReadSettings;
  readonly pollIntervalMs: number;
  readonly pendingRetryMs: number;
  readonly memoryBudget: number;
  /** Pages held at once, the one being committed included. */
  readonly pagesAhead: number;
  /** Longest time that fetching, completing and committing one page may take before the loop counts as wedged. */
  readonly stepMs: number;
}

/** Follows the feed page by page while the lease is ours. Resolves when it is lost or the signal aborts. */
export async function syncPages(lease: LeaseGrant, context: LoopContext, signal: AbortSignal): Promise<void> {
  const { clock, observer, store, pollIntervalMs } = context;
  const recent = createRecentCursors();
  let failures = 0;
  const pause = async (ms: number) => {
    observer.ticked(ms);
    await clock.sleep(ms, signal);
  };
  while (!signal.aborted) {
    try {
      const start = await store.readPosition(lease.feed);
      const reached = await syncFrom(start, lease, context, recent, signal);
      if (failures > 0) observer.recovered('feed', failures);
      failures = 0;
      if (reached === 'fenced' && !(await store.renewLease(lease, context.leaseTtlMs))) return;
      if (reached === 'end' || reached === 'stuck') await pause(pollIntervalMs);
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, troubleOf(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, failures, pauseMs);
      await pause(pauseMs);
    }
  }
}

/** Pages from a position on, each committed in its turn, until one leads no further. */
async function syncFrom(
  start: Position,
  lease: LeaseGrant,
  context: LoopContext,
  recent: RecentCursors,
  signal: AbortSignal,
): Promise<Progress> {
  const { observer, service, store, identity } = context;
  const pageContext = { service, store, observer, filters: identity.filters, lease };
  const ahead = openAhead(start, context, signal);
  try {
    for (;;) {
      observer.ticked(context.stepMs);
      const page = await ahead.next();
      if (page === null) return 'more';
      const progress = await syncPage(page, pageContext, signal);
      if (progress === 'fenced') return progress;
      const reached = progress === 'more' && recent.seen(page.next) ? 'stuck' : progress;
      observer.polled(pollOutcome(page, reached), page.draft.page.items.length);
      observer.caughtUp(reached === 'end' ? page.polledAt : null);
      if (reached !== 'more') return reached;
    }
  } finally {
    ahead.stop();
  }
}

function openAhead(start: Position, context: LoopContext, signal: AbortSignal): ReadAhead {
  const { service, read, clock, loader } = context;
  return readAhead(
    start,
    {
      read: (at, until) => readPage(service, read, clock, at, until),
      complete: (draft, until) => loader.completePage(draft, until),
      maxPages: context.pagesAhead,
      maxBytes: context.memoryBudget,
    },
    signal,
  );
}

function pollOutcome(page: CompletedPage, reached: Progress): PollOutcome {
  if (reached === 'end' || reached === 'stuck') return reached;
  return page.draft.page.items.length > 0 ? 'entries' : 'skipped';
}
