import { type Breaker, createBreaker, type PageQuality, qualityOfNew } from './breaker.js';
import { commitPage, type PageContent } from './commit-page.js';
import type { FeedContext, LeaderContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import { type DeadEnd, findDeadEnd, isDeadEnd, isEndAfterCommit, isEndOfFeed } from './end-of-feed.js';
import type { FeedPauses } from './feed-pauses.js';
import { openAhead } from './open-ahead.js';
import { batchOf } from './page-draft.js';
import type { Backfill, CommitOutcome, LeaseGrant, Position, ReadingPace, SyncObserver } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import type { FetchedPage } from './read-page.js';
import { createPaceMeter, type PaceMeter } from './reading-pace.js';
import { createRecentCursors, type RecentCursors } from './recent-cursors.js';
import { type CursorRefusals, createCursorRefusals } from './rejected-cursor.js';
import { reportLoading } from './report-loading.js';

/** After this long a turn ends, and with it what failed before; the next goes on from where the store stands. */
const STRETCH_MS = 30_000;

const NOTHING: PageContent = { batch: batchOf([], null), quarantine: [] };

/** What reading a backfill needs of the engine; of the feed itself nothing. */
export interface BackfillContext
  extends Pick<FeedContext, 'service' | 'store' | 'clock' | 'loader' | 'read'>,
    Pick<LeaderContext, 'retryWakeUp'>,
    Pick<FeedContext, 'budget' | 'pageLimit' | 'pagesAhead' | 'pollIntervalMs'> {
  readonly observer: Pick<SyncObserver, 'committed' | 'truncated' | 'reading' | 'backfilled'>;
}

/** What is remembered of a backfill from turn to turn. */
export interface BackfillMemory {
  readonly breaker: Breaker;
  readonly refusals: CursorRefusals;
  readonly meter: PaceMeter;
  recent: RecentCursors;
  /** Where the page before led nowhere. */
  deadEnd: DeadEnd | null;
  /** Where it stands in the store. */
  backfill: Backfill;
  pace: ReadingPace | null;
  /** Of the page that is being committed. */
  quality: PageQuality | null;
  /** Runs stored by the last commit, to be noted with the next. */
  unnoted: number;
}

export function rememberBackfill(backfill: Backfill): BackfillMemory {
  return {
    breaker: createBreaker(),
    refusals: createCursorRefusals(),
    meter: createPaceMeter(),
    recent: createRecentCursors(),
    deadEnd: null,
    backfill,
    pace: null,
    quality: null,
    unnoted: 0,
  };
}

/**
 * `through`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the
 * lease was lost, or the backfill was changed or stopped by somebody else.
 */
export type BackfillOutcome = 'through' | 'more' | 'stuck' | 'fenced';

/**
 * Reads pages of a backfill and stores them with its position, at full speed; of the history only while the feed itself has
 * nothing to read, so that new runs never wait for old ones. What a page holds beyond its end is stored as well: it does no
 * harm, and the end may be moved out later.
 */
export async function readBackfillPages(
  start: Position,
  memory: BackfillMemory,
  lease: LeaseGrant,
  context: BackfillContext,
  pauses: FeedPauses,
  signal: AbortSignal,
): Promise<BackfillOutcome> {
  const { clock, read, service } = context;
  // Its end is looked for page by page.
  const ahead = openAhead(start, { line: 'backfill', maxJoined: 1, deadEnd: memory.deadEnd }, context, signal);
  const begunAt = clock.monotonic();
  try {
    while (clock.monotonic() - begunAt < STRETCH_MS) {
      const page = await ahead.next();
      if (page === null) return 'more';
      memory.refusals.accepted();
      if (memory.backfill.kind === 'history') await pauses.reached(signal);
      signal.throwIfAborted();
      await requireFeedCursor(page, lease, context, signal);
      if (isBeyond(page, memory.backfill)) return finish(memory, lease, context);
      const verdict = await isEndOfFeed(page, read.filters, service, signal);
      const { outcome, content } = await commit(page, memory, lease, context, signal);
      if (outcome.kind === 'fenced') return 'fenced';
      passed(page, memory, context);
      const { deadEnd } = memory;
      if (verdict === 'end') return finish(memory, lease, context);
      memory.deadEnd = await findDeadEnd(page, read.filters, service, signal);
      // With what it rests on: the database may have lost the commit, and the cursor did not move.
      if (isEndAfterCommit(memory.deadEnd, deadEnd, outcome.counts)) return finish(memory, lease, context, content);
      if (isDeadEnd(page) || verdict === 'unclear' || memory.recent.seen(page.next)) return 'stuck';
    }
    return 'more';
  } finally {
    ahead.stop();
  }
}

/**
 * Whether the whole page proves to lie beyond the end of what was asked for: what is bad, or has no delivery time, may belong
 * to it. The history ends with the feed only: `since` may have led the feed past entries that were delivered after its start.
 */
function isBeyond({ provenUpTo, draft: { entries, items } }: FetchedPage, { kind, until }: Backfill): boolean {
  if (kind === 'history') return false;
  const beyond = entries.filter(({ accepted: { run } }) => run.deliveredAt !== null && run.deliveredAt > until);
  return provenUpTo !== null && beyond.length === items;
}

async function commit(
  page: CompletedPage,
  memory: BackfillMemory,
  lease: LeaseGrant,
  { store, observer, retryWakeUp }: BackfillContext,
  signal: AbortSignal,
): Promise<{ readonly outcome: CommitOutcome; readonly content: PageContent }> {
  const { at, draft, next } = page;
  const { breaker, pace, unnoted } = memory;
  const { id, until, cursor } = memory.backfill;
  const committed = await commitPage(
    page,
    async (content) => {
      memory.quality = await qualityOfNew(draft, content.quarantine, lease.feed, store);
      breaker.check(memory.quality);
      return store.commitBackfill({
        ...{ lease, id, until, from: cursor, finished: false, pace },
        // The stored cursor may be rejected, and this page was then requested from another position.
        to: next ?? at.cursor,
        deliveredUpTo: upTo(page, until),
        entries: draft.items,
        stored: unnoted,
        ...content,
      });
    },
    (batch) => store.tryEntries(lease, batch),
    signal,
  );
  const { outcome, entries } = committed;
  if (outcome.kind === 'committed') {
    memory.backfill = { ...memory.backfill, stored: memory.backfill.stored + unnoted };
    memory.unnoted = outcome.counts.inserted + outcome.counts.updated;
    observer.committed(outcome.counts, []);
    reportLoading(entries, observer);
    retryWakeUp.committed(entries);
  }
  return committed;
}

function upTo({ provenUpTo }: Pick<FetchedPage, 'provenUpTo'>, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

/** After the commit: remembers where the backfill stands now, and tells. */
function passed(
  { at, draft, next, provenUpTo }: CompletedPage,
  memory: BackfillMemory,
  { observer, clock }: BackfillContext,
): void {
  const { backfill, breaker, meter } = memory;
  const items = draft.items;
  const { until } = backfill;
  const deliveredUpTo = later(backfill.deliveredUpTo, upTo({ provenUpTo }, until));
  const entries = backfill.entries + items;
  if (memory.quality !== null) breaker.committed(memory.quality);
  memory.backfill = { ...backfill, cursor: next ?? at.cursor, deliveredUpTo, entries };
  const leftMs = deliveredUpTo === null ? null : until.getTime() - deliveredUpTo.getTime();
  memory.pace = meter.passed(clock.monotonic(), items, leftMs);
  observer.reading(backfill.kind, { entries, deliveredUpTo, pace: memory.pace });
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}

/** On its own, so that all it stored is noted. */
async function finish(
  { backfill, unnoted }: BackfillMemory,
  lease: LeaseGrant,
  { store }: BackfillContext,
  content = NOTHING,
): Promise<BackfillOutcome> {
  const { id, until, cursor } = backfill;
  const outcome = await store.commitBackfill({
    ...{ lease, id, until, from: cursor, to: cursor, finished: true },
    ...{ ...content, deliveredUpTo: null, entries: 0, stored: unnoted, pace: null },
  });
  return outcome.kind === 'fenced' ? 'fenced' : 'through';
}
