import type { LeaderContext } from './context.js';
import { createFreshnessClaims } from './page/freshness-claims.js';
import type { CheckedPage, CommittedPage, Next } from './page/page.js';
import type { FeedMove, LeaseGrant } from './ports/index.js';
import { createCatchUpReporter } from './progress/catch-up-reporter.js';
import { createHiddenEndReporter, createStuckReporter } from './progress/stuck-reporter.js';
import { Pages } from './read-pages.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { MAX_JOINED_PAGES } from './writer/join-pages.js';

/** The pages of the feed. Each is committed with the feed's cursor and what it proves about freshness. */
export class FeedPages extends Pages {
  readonly what = 'feed';
  readonly priority = 'feed';
  readonly maxHeld: number;
  readonly maxJoined = MAX_JOINED_PAGES;
  readonly maxCommits: number;
  readonly #claims = createFreshnessClaims();
  readonly #catchUp;
  readonly #stuck;
  readonly #hiddenEnd;

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
    this.#stuck = createStuckReporter(lease, context);
    this.#hiddenEnd = createHiddenEndReporter(context);
  }

  isLast(): boolean {
    return false;
  }

  onStep(): void {
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

  protected async admit(page: CheckedPage): Promise<CheckedPage> {
    return page;
  }

  protected fallBack(cursor: string, error: unknown, signal: AbortSignal): Promise<void> {
    return recoverCursor(error, cursor, this.lease, this.context, signal);
  }

  protected async committed(page: CommittedPage, next: Next): Promise<boolean> {
    const { observer } = this.context;
    const { ending, items } = page;
    observer.freshness(page.asOf);
    this.reportLoadings(page);
    if (ending.failure !== undefined) throw ending.failure;
    if (next === 'end' || ending.possibleEnd?.isShort === true) this.#claims.ended(page);
    const isRefused = next === 'unclear' && (items === 0 || ending.possibleEnd?.isShort === null);
    this.#hiddenEnd.report({ isEnd: next === 'end', isRefused });
    this.onCommitted(page);
    this.#reportPolls(page, next);
    observer.caughtUp(next === 'end' ? page.polledAt : null);
    if (next === 'more') await this.#catchUp.pageCommitted(page);
    else await this.#catchUp.stop();
    await this.#stuck.report(next === 'stuck');
    return true;
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
