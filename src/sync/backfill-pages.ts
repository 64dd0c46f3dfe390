import { reachesBeyond } from './end-of-feed.js';
import type { FeedPauses } from './feed-pauses.js';
import type { Backfill, LeaseGrant, Position, ReadingPace, SyncObserver } from './ports.js';
import type { CompletedPage } from './read-ahead.js';
import { createPaceMeter, type PaceMeter } from './reading-pace.js';
import { reportLoading } from './report-loading.js';
import { createPassMemory, type PassContext, type PassMemory, type PassResult, runPass } from './run-pass.js';
import { type StoredPage, storePage } from './store-page.js';

/** Duration of a slice. The store is then asked for the next backfill. */
const SLICE_MS = 30_000;

/** What reading a backfill needs of the engine; of the feed itself nothing. */
export type BackfillContext = PassContext & {
  readonly pollIntervalMs: number;
  readonly pagesAhead: number;
  readonly observer: Pick<SyncObserver, 'committed' | 'truncated' | 'reading' | 'backfilled'>;
};

/** What is remembered of a backfill from turn to turn. */
export interface BackfillMemory extends PassMemory {
  readonly meter: PaceMeter;
  /** Where it stands in the store. */
  backfill: Backfill;
  pace: ReadingPace | null;
}

export function rememberBackfill(backfill: Backfill): BackfillMemory {
  return { ...createPassMemory(), meter: createPaceMeter(), backfill, pace: null };
}

/**
 * Reads pages of a backfill at full speed; of the history only while the feed itself has nothing to read, so that new runs
 * never wait for old ones. What a page holds beyond its end is stored as well: it does no harm, and the end may be moved out
 * later.
 */
export async function readBackfillPages(
  start: Position,
  memory: BackfillMemory,
  lease: LeaseGrant,
  context: BackfillContext,
  pauses: FeedPauses,
  signal: AbortSignal,
): Promise<PassResult> {
  const { kind, cursor } = memory.backfill;
  // Before any page is asked for.
  const feedHadCursor = kind === 'history' && (await context.store.readPosition(lease.feed)).cursor !== null;
  return runPass(
    {
      ...{
        memory,
        line: 'backfill',
        pagesAhead: context.pagesAhead,
        start,
        stored: cursor,
        sliceMs: SLICE_MS,
        pauseMs: 0,
      },
      waitForTurn: async (until) => {
        if (kind === 'history') await pauses.reached(until);
      },
      storePage: (page, stored, until) => storeBackfillPage(page, stored, feedHadCursor, memory, lease, context, until),
    },
    lease,
    context,
    signal,
  );
}

async function storeBackfillPage(
  page: CompletedPage,
  stored: string | null,
  feedHadCursor: boolean,
  memory: BackfillMemory,
  lease: LeaseGrant,
  context: BackfillContext,
  signal: AbortSignal,
): Promise<StoredPage> {
  const { store, read, observer } = context;
  const { breaker, pace, deadEnd } = memory;
  const { id, kind, until } = memory.backfill;
  // The history ends with the feed only: `since` may have led the feed past entries that were delivered after its start.
  const isLast = kind !== 'history' && reachesBeyond(page, until);
  return storePage(
    page,
    isLast,
    {
      ...{ ...context, lease, filters: read.filters, breaker, stored, deadEnd },
      commit: (content, { from, to, atEnd, again }) =>
        store.commitBackfill({
          ...{ lease, id, until, from, to, finished: atEnd, feedHadCursor, pace, ...content },
          deliveredUpTo: upTo(page, until),
          entries: again ? 0 : page.draft.items,
        }),
      onCommitted: ({ counts }, entries) => {
        observer.committed(counts, []);
        reportLoading(entries, observer);
        passed(page, counts.inserted + counts.updated, memory, context);
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
  runs: number,
  memory: BackfillMemory,
  { observer, clock }: BackfillContext,
): void {
  const { backfill, meter } = memory;
  const { until } = backfill;
  const deliveredUpTo = later(backfill.deliveredUpTo, upTo({ provenUpTo }, until));
  const entries = backfill.entries + draft.items;
  const stored = backfill.stored + runs;
  memory.backfill = { ...backfill, cursor: next ?? at.cursor, deliveredUpTo, entries, stored };
  const leftMs = deliveredUpTo === null ? null : until.getTime() - deliveredUpTo.getTime();
  memory.pace = meter.passed(clock.monotonic(), draft.items, leftMs);
  observer.reading(backfill.kind, { entries, deliveredUpTo, pace: memory.pace });
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
