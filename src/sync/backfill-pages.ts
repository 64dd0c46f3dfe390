import { type Breaker, createBreaker } from './breaker.js';
import type { FeedContext, LeaderContext } from './context.js';
import { requireFeedCursor } from './cursor-witness.js';
import { type DeadEnd, reachesBeyond } from './end-of-feed.js';
import type { FeedPauses } from './feed-pauses.js';
import { openAhead } from './open-ahead.js';
import type { Backfill, LeaseGrant, Position, ReadingPace, SyncObserver } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import { createPaceMeter, type PaceMeter } from './reading-pace.js';
import { createRecentCursors, type RecentCursors } from './recent-cursors.js';
import { type CursorRefusals, createCursorRefusals } from './rejected-cursor.js';
import { reportLoading } from './report-loading.js';
import { type PageProgress, storePage } from './store-page.js';

/** After this long a turn ends, and with it what failed before; the next goes on from where the store stands. */
const STRETCH_MS = 30_000;

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
  };
}

/**
 * `end`: it has read to its end; `more`: there is more to read; `stuck`: its cursor leads nowhere for now; `fenced`: the
 * lease was lost, or the backfill was changed or stopped by somebody else.
 */
export type BackfillOutcome = Exclude<PageProgress, 'unclear'>;

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
  const { clock } = context;
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
      const { progress, deadEnd } = await storeBackfillPage(page, memory, lease, context, signal);
      if (progress === 'fenced') return progress;
      passed(page, memory, context);
      memory.deadEnd = deadEnd;
      if (progress === 'unclear' || (progress === 'more' && memory.recent.seen(page.next))) return 'stuck';
      if (progress !== 'more') return progress;
    }
    return 'more';
  } finally {
    ahead.stop();
  }
}

function storeBackfillPage(
  page: CompletedPage,
  memory: BackfillMemory,
  lease: LeaseGrant,
  context: BackfillContext,
  signal: AbortSignal,
) {
  const { store, read, observer } = context;
  const { breaker, pace, deadEnd } = memory;
  const { id, kind, until, cursor } = memory.backfill;
  // The history ends with the feed only: `since` may have led the feed past entries that were delivered after its start.
  const isLast = kind !== 'history' && reachesBeyond(page, until);
  return storePage(
    page,
    isLast,
    {
      ...context,
      ...{ lease, filters: read.filters, breaker, stored: cursor, deadEnd },
      commit: (content, { from, to, atEnd, again }) =>
        store.commitBackfill({
          ...{ lease, id, until, from, to, finished: atEnd, pace, ...content },
          deliveredUpTo: upTo(page, until),
          entries: again ? 0 : page.draft.items,
        }),
      onCommitted: ({ counts }, entries) => {
        const { inserted, updated } = counts;
        memory.backfill = { ...memory.backfill, stored: memory.backfill.stored + inserted + updated };
        observer.committed(counts, []);
        reportLoading(entries, observer);
      },
    },
    signal,
  );
}

function upTo({ provenUpTo }: Pick<CompletedPage, 'provenUpTo'>, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

/** After the commit: remembers where the backfill stands now, and tells. */
function passed(
  { at, draft, next, provenUpTo }: CompletedPage,
  memory: BackfillMemory,
  { observer, clock }: BackfillContext,
): void {
  const { backfill, meter } = memory;
  const items = draft.items;
  const { until } = backfill;
  const deliveredUpTo = later(backfill.deliveredUpTo, upTo({ provenUpTo }, until));
  const entries = backfill.entries + items;
  memory.backfill = { ...backfill, cursor: next ?? at.cursor, deliveredUpTo, entries };
  const leftMs = deliveredUpTo === null ? null : until.getTime() - deliveredUpTo.getTime();
  memory.pace = meter.passed(clock.monotonic(), items, leftMs);
  observer.reading(backfill.kind, { entries, deliveredUpTo, pace: memory.pace });
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
