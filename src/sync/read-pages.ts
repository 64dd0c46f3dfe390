import type { LeaderContext } from './context.js';
import { createRecentCursors } from './page/cursors.js';
import { nextAfter } from './page/end-of-feed.js';
import type { Next, PossibleEnd } from './page/ending.js';
import type { CheckedPage, CommittedPage } from './page/page.js';
import type { Position, Reading, SyncObserver } from './ports/index.js';
import { type PrefetchOptions, prefetchPages } from './prefetch/prefetch-pages.js';
import { createCursorRefusals } from './recovery/rejected-cursor.js';
import type { PageTarget } from './writer/page-target.js';
import { PageWriter } from './writer/write-pages.js';

/** The feed or a pass, whose pages are read and committed. */
export interface PageOwner extends PageTarget, PrefetchOptions {
  readonly what: Reading;
  readonly track: Track;
  /** Returns what to commit of a page, by default all; null: nothing now, and the page is read again later. */
  admit?(page: CheckedPage, signal: AbortSignal): Promise<CheckedPage | null>;
  /** Called after the commit of each page, with what follows it. Returns false to stop although more follows. */
  committed(page: CommittedPage, next: Next, signal: AbortSignal): Promise<boolean>;
}

/** What is remembered of the pages of the feed or of a pass, until it ends. */
export class Track {
  readonly refusals = createCursorRefusals();
  /** The position that the last committed page led to. */
  at: Position = { cursor: null, since: null };
  /** The possible end that the last committed page found, without those whose requests failed. */
  possibleEnd: PossibleEnd | null = null;
  #recentCursors = createRecentCursors();

  /** Called before pages are read from a position. If it is not where the last one led, a cursor may return without a circle. */
  start(at: Position): void {
    if (at.cursor !== this.at.cursor) this.forgetCursors();
    this.at = at;
  }

  /** A cursor may return now without a circle. */
  forgetCursors(): void {
    this.#recentCursors = createRecentCursors();
  }

  /** Called after the commit of each page, in order. Returns what follows it. */
  after(page: CommittedPage): Next {
    const next = nextAfter(page, page.ending, page.endClaimed, this.#recentCursors);
    if (page.ending.failure === undefined) this.possibleEnd = page.ending.possibleEnd;
    this.at = { ...this.at, cursor: page.next ?? this.at.cursor };
    // A pause follows the end, so no circle through it needs detecting. An idle feed should not keep its cursors in memory.
    if (next === 'end') this.forgetCursors();
    return next;
  }
}

/**
 * Reads and commits pages from a position on; while one is committed, the next ones are read. Returns what follows the first page that
 * does not lead further; `more` if the owner or the signal stopped the reading before.
 */
export async function readPages(
  start: Position,
  owner: PageOwner,
  context: LeaderContext,
  signal: AbortSignal,
): Promise<Next> {
  const { what, track } = owner;
  track.start(start);
  const pages = prefetchPages(start, track.possibleEnd, owner, context, signal);
  const take = async (maxJoined: number) => {
    const taken = await pages.take(maxJoined);
    if (taken.length === 0) return [];
    track.refusals.accepted();
    const admitted: CheckedPage[] = [];
    for (const page of taken) {
      const wanted = owner.admit === undefined ? page : await owner.admit(page, signal);
      if (wanted === null) break; // those after it must not be committed without it
      admitted.push(wanted);
    }
    return admitted;
  };
  const source = { ...pages, take };
  /** The failures of reports. Thrown at the end, because the commits that were begun are reported as well. */
  const failures: unknown[] = [];
  const reportAndGoOn = async (page: CommittedPage, next: Next): Promise<boolean> => {
    const { polls, commitBegunAt, committedAt, counts } = page;
    context.observer.committed(counts, what === 'feed' ? page.deliveries : []);
    context.observer.pageStored({ reading: what, polls, commitBegunAt, committedAt, counts });
    if (page.lacksMemory) context.retryWakeUp.wake();
    try {
      return (await owner.committed(page, next, signal)) && next === 'more';
    } catch (error) {
      failures.push(error);
      return false;
    }
  };
  let last: Next = 'more';
  try {
    for await (const page of new PageWriter(source, owner, context.clock, signal).write()) {
      const next = page.kind === 'fenced' ? 'fenced' : track.after(page);
      if (last === 'more') last = next;
      if (page.kind === 'fenced' || !(await reportAndGoOn(page, next))) pages.stop();
    }
    if (failures.length > 0) throw failures[0];
    return last;
  } finally {
    pages.close();
  }
}

/** Reports the outcomes for the truncated entries of a committed page. */
export function reportLoadings({ loadings }: CommittedPage, observer: SyncObserver): void {
  const { resolved, pending, skipped } = loadings;
  observer.truncated('resolved', resolved);
  observer.truncated('pending', pending);
  observer.truncated('skipped', skipped);
}
