import type { LeaderContext } from './context.js';
import { createFreshnessClaims } from './page/freshness-claims.js';
import { MAX_JOINED_PAGES } from './page/join-pages.js';
import type { CheckedPage, CommittedPage, Next } from './page/page.js';
import type { FeedMove, LeaseGrant } from './ports/index.js';
import { createCatchUpReporter } from './progress/catch-up-reporter.js';
import { Pages } from './read-pages.js';
import { recoverCursor } from './recovery/recover-cursor.js';

/** Number of pages, with no end between them, that the service refuses to list without filters, after which this is reported. */
const REFUSED_PAGES = 10;

/** The pages of the feed. Each is committed with the feed's cursor and what it proves about freshness. */
export class FeedPages extends Pages {
  readonly what = 'feed';
  readonly priority = 'feed';
  readonly maxHeld: number;
  readonly maxJoined = MAX_JOINED_PAGES;
  readonly maxCommits: number;
  readonly #claims = createFreshnessClaims();
  readonly #catchUp;
  /** Number of pages since the last end that may have been the end, which the service does not show. */
  #hiddenEnds = 0;
  /** Null: the state that the previous process stored is not known. */
  #isStuck: boolean | null = null;

  /** @param onCommitted called after the commit of each page */
  constructor(
    lease: LeaseGrant,
    context: LeaderContext,
    private readonly onCommitted: (page: CommittedPage) => void,
  ) {
    super(lease, context);
    this.maxHeld = context.settings.maxHeldPages;
    this.maxCommits = context.settings.maxPageCommits;
    this.#catchUp = createCatchUpReporter(lease, context);
  }

  override onStep(): void {
    this.context.observer.ticked(this.context.settings.stepMs);
  }

  moveBy(page: CheckedPage): FeedMove {
    const freshness = { end: page.ending.claim, ...this.#claims.next(page) };
    const from = page.at.cursor;
    return { lease: this.lease, from, to: page.next ?? from, freshness };
  }

  protected override moved(): void {
    super.moved();
    this.#claims.moved();
  }

  protected fallBack(cursor: string, error: unknown, signal: AbortSignal): Promise<void> {
    return recoverCursor(error, cursor, this.lease, this.context, signal);
  }

  protected async committed(page: CommittedPage, next: Next): Promise<boolean> {
    const { observer } = this.context;
    const { ending } = page;
    observer.freshness(page.asOf);
    this.reportLoadings(page);
    // Only a request that would have shown the end failed: what was committed is reported, but nothing that follows from the end.
    if (ending.failure !== undefined) throw ending.failure;
    this.#noteEnd(page, next);
    this.onCommitted(page);
    this.#reportPolls(page, next);
    observer.caughtUp(next === 'end' ? page.polledAt : null);
    if (next === 'more') await this.#catchUp.pageCommitted(page);
    else await this.#catchUp.stop();
    await this.#reportStuck(next === 'stuck');
    return true;
  }

  #noteEnd(page: CommittedPage, next: Next): void {
    const { ending, items } = page;
    if (next === 'end' || ending.possibleEnd?.isShort === true) this.#claims.ended(page);
    if (next === 'end') this.#hiddenEnds = 0;
    // Its cursors belong to their filters, and move or are missing.
    const isHidden = next === 'unclear' && (items === 0 || ending.possibleEnd?.isShort === null);
    if (isHidden && ++this.#hiddenEnds === REFUSED_PAGES) this.context.observer.endHidden();
  }

  /** Stores and reports whether the feed is stuck, if that has changed. After a failure of the store, the next page tries again. */
  async #reportStuck(isStuck: boolean): Promise<void> {
    const { store, observer } = this.context;
    const before = this.#isStuck;
    if (isStuck === before) return;
    await store.storeStuck(this.lease, isStuck);
    if (isStuck || before === true) observer.stuck(isStuck);
    this.#isStuck = isStuck;
  }

  /** Reports each poll of a page. The last one has the outcome of the page; those before it had entries. */
  #reportPolls({ polls }: CommittedPage, next: Next): void {
    polls.forEach(({ items }, index) => {
      const last = index === polls.length - 1;
      const outcome = last && (next === 'end' || next === 'stuck') ? next : items > 0 ? 'entries' : 'skipped';
      this.context.observer.polled(outcome, items);
    });
  }
}
