import type { LeaderContext } from './context.js';
import type { Priority } from './memory/memory-budget.js';
import { createRecentCursors } from './page/cursors.js';
import { nextAfter } from './page/end-of-feed.js';
import type { CheckedPage, CommittedPage, Next, PossibleEnd } from './page/page.js';
import type { FeedMove, LeaseGrant, PassMove, Position, Reading } from './ports/index.js';
import { type PrefetchOptions, prefetchPages } from './prefetch/prefetch-pages.js';
import { CursorRejected, createCursorRefusals } from './recovery/rejected-cursor.js';
import { Breaker } from './writer/breaker.js';
import { type PageTarget, PageWriter } from './writer/write-pages.js';

/**
 * The loop of the feed and of every pass: reads pages, has them committed, and finds out what follows each. What is special about the
 * feed and about a pass is called for each page in this order: `isLast` when it was read, `admit` when it can be committed, `moveBy` for its
 * commit, `committed` after it. Pages that are read ahead may be at an earlier step than the page before.
 */
export abstract class Pages implements PageTarget, PrefetchOptions {
  abstract readonly what: Reading;
  abstract readonly priority: Priority;
  abstract readonly maxHeld: number;
  abstract readonly maxJoined: number;
  abstract readonly maxCommits: number;
  readonly breaker = new Breaker();
  /** The position that the last committed page led to. */
  at: Position = { cursor: null, since: null };
  /** The possible end that the last committed page found, if its requests succeeded. */
  #possibleEnd: PossibleEnd | null = null;
  #recentCursors = createRecentCursors();
  readonly #refusals = createCursorRefusals();

  constructor(
    readonly lease: LeaseGrant,
    protected readonly context: LeaderContext,
  ) {}

  abstract moveBy(page: CheckedPage): FeedMove | PassMove;
  /** Called after the commit of each page, with what follows it. Returns false to stop although more follows. */
  protected abstract committed(page: CommittedPage, next: Next, signal: AbortSignal): Promise<boolean>;
  /** Called when the service may reject a cursor. Rejects with the error if it does not; else the next start is another position. */
  protected abstract fallBack(cursor: string, error: unknown, signal: AbortSignal): Promise<void>;

  isLast(_page: CheckedPage): boolean {
    return false;
  }

  /** Called before each step that may take some time. */
  onStep(): void {}

  /** Returns what to commit of a page; null: nothing now, and the page is read again later. */
  protected async admit(page: CheckedPage, _signal: AbortSignal): Promise<CheckedPage | null> {
    return page;
  }

  /** Called when pages are read from another position than the one that the last page led to. */
  protected moved(): void {
    this.forgetCursors();
  }

  /** A cursor may return now without a circle. */
  protected forgetCursors(): void {
    this.#recentCursors = createRecentCursors();
  }

  /**
   * Reads and commits pages from a position on; while one is committed, the next ones are read. Returns what follows the first page
   * that does not lead further; `more` if the reading was stopped before.
   * @throws MostlyBad
   * @throws CursorRejected if the service rejects the cursor
   */
  async readFrom(start: Position, signal: AbortSignal): Promise<Next> {
    if (start.cursor !== this.at.cursor || start.since?.getTime() !== this.at.since?.getTime()) this.moved();
    this.at = start;
    try {
      return await this.#readAll(start, signal);
    } catch (error) {
      const { cursor } = this.at;
      if (cursor === null || !this.#refusals.isPersistent(cursor, error)) throw error;
      await this.fallBack(cursor, error, signal);
      this.forgetCursors();
      const whose = this.what === 'feed' ? 'the feed' : 'a pass';
      const message = `the service rejected the cursor of ${whose}, which falls back to an earlier position`;
      throw new CursorRejected(message, error, this.context.settings.pollIntervalMs);
    }
  }

  async #readAll(start: Position, signal: AbortSignal): Promise<Next> {
    const pages = prefetchPages(start, this.#possibleEnd, this, this.context, signal);
    const take = async () => {
      const page = await pages.take();
      if (page === null) return null;
      this.#refusals.accepted();
      return this.admit(page, signal);
    };
    /** The failures of reports. Thrown at the end, because the commits that were begun are reported as well. */
    const failures: unknown[] = [];
    const fail = (error: unknown) => {
      failures.push(error);
      return false;
    };
    /** Decided by the first page that does not lead further. */
    let outcome: Next = 'more';
    try {
      for await (const page of new PageWriter({ ...pages, take }, this, this.context, signal).write()) {
        const next = page.kind === 'fenced' ? 'fenced' : this.#after(page);
        if (outcome === 'more') outcome = next;
        const goesOn = page.kind === 'committed' && (await this.#report(page, next, signal).catch(fail));
        if (!goesOn || next !== 'more') pages.stop();
      }
      if (failures.length > 0) throw failures[0];
      return outcome;
    } finally {
      pages.close();
    }
  }

  /** Called after the commit of each page, in order. Returns what follows it. */
  #after(page: CommittedPage): Next {
    const next = nextAfter(page, page.ending, page.endClaimed, this.#recentCursors);
    if (page.ending.failure === undefined) this.#possibleEnd = page.ending.possibleEnd;
    this.at = { ...this.at, cursor: page.next ?? this.at.cursor };
    // A pause follows the end, so no circle through it needs detecting. An idle feed should not keep its cursors in memory.
    if (next === 'end') this.forgetCursors();
    return next;
  }

  #report(page: CommittedPage, next: Next, signal: AbortSignal): Promise<boolean> {
    const { what } = this;
    const { observer, retryWakeUp } = this.context;
    const { polls, commitBegunAt, committedAt, counts } = page;
    observer.committed(counts, what === 'feed' ? page.deliveries : []);
    observer.pageStored({ reading: what, polls, commitBegunAt, committedAt, counts });
    if (page.lacksMemory) retryWakeUp.wake();
    return this.committed(page, next, signal);
  }

  /** Reports the outcomes for the truncated entries of a committed page. */
  protected reportLoadings({ loadings }: CommittedPage): void {
    const { observer } = this.context;
    observer.truncated('resolved', loadings.resolved);
    observer.truncated('pending', loadings.pending);
    observer.truncated('skipped', loadings.skipped);
  }
}
