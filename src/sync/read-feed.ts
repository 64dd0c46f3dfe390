import { classifyError } from '../core/errors.js';
import type { LeaderContext } from './context.js';
import type { Next } from './page/ending.js';
import { createFreshnessClaims } from './page/freshness-claims.js';
import type { CheckedPage, CommittedPage } from './page/page.js';
import type { FeedStore, LeaseGrant, Position } from './ports/index.js';
import { createCatchUpReporter } from './progress/catch-up-reporter.js';
import { createHiddenEndReporter, createStuckReporter } from './progress/stuck-reporter.js';
import { type PageOwner, readPages, reportLoadings, Track } from './read-pages.js';
import { recoverCursor } from './recovery/recover-cursor.js';
import { CursorRejected } from './recovery/rejected-cursor.js';
import { pauseAfter, pauseUntilPoll } from './retry/backoff.js';
import type { IdleGate } from './waiting/idle-gate.js';
import { createBreaker } from './writer/breaker.js';
import { MAX_JOINED_PAGES } from './writer/join-pages.js';
import type { CommitPage } from './writer/page-target.js';

/** Reads the feed page by page while this process leads it. Resolves when the feed is lost or the signal aborts. */
export async function readFeed(
  lease: LeaseGrant,
  context: LeaderContext,
  idle: IdleGate,
  signal: AbortSignal,
): Promise<void> {
  const { clock, observer, store, leases } = context;
  const { pollIntervalMs } = context.settings;
  let failures = 0;
  let fences = 0;
  let polledAt = clock.monotonic();
  const pages = new FeedPages(lease, context, (page) => {
    polledAt = page.polledAt;
    if (failures > 0) observer.recovered('feed');
    failures = 0;
    fences = 0;
  });
  /**
   * The position to continue from; null: read the stored one. Kept between polls, because the fence rejects a commit from any other
   * cursor.
   */
  let position: Position | null = null;
  const pause = async (ms: number, sleep = clock.sleep) => {
    observer.ticked(ms);
    idle.open();
    await sleep(ms, signal);
    idle.close();
  };
  while (!signal.aborted) {
    try {
      const start: Position = position ?? (await store.readPosition(lease.feed));
      position = null;
      const next = await pages.readFrom(start, signal);
      if (next === 'fenced') {
        // Either the lease was lost, which the next read of the feed finds, or another writer moved the position, which is read again.
        leases.readEarly();
        fences += 1;
        await pause(pauseAfter(fences, { action: 'retry' }, clock.random()));
        continue;
      }
      const { at } = pages.track;
      if (at.cursor !== null) position = at; // without a cursor, the fence would not notice another `since`
      // Otherwise the page had no entries, and its cursor moved: there may be more at once.
      if (next !== 'more') await pause(pauseUntilPoll(pollIntervalMs, clock.monotonic() - polledAt));
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      const pauseMs = pauseAfter(failures, classifyError(error), clock.random());
      observer.polled('failed', 0);
      observer.failed('feed', error, pauseMs);
      await pause(pauseMs, (ms, until) => context.recovery.pauseAfterFailure(error, ms, until));
    }
  }
}

/** Reads the pages of the feed, and commits each with the feed's cursor and what it proves about freshness. */
class FeedPages implements PageOwner {
  readonly what = 'feed';
  readonly priority = 'feed';
  readonly track = new Track();
  readonly breaker = createBreaker();
  readonly store: FeedStore;
  readonly maxHeld: number;
  readonly maxJoined = MAX_JOINED_PAGES;
  readonly maxCommits: number;
  readonly #claims = createFreshnessClaims();
  readonly #catchUp;
  readonly #stuck;
  readonly #hiddenEnd;

  /** @param onCommitted called after the commit of each page */
  constructor(
    readonly lease: LeaseGrant,
    private readonly context: LeaderContext,
    private readonly onCommitted: (page: CommittedPage) => void,
  ) {
    this.store = context.store;
    this.maxHeld = context.settings.maxHeldPages;
    this.maxCommits = context.settings.maxPageCommits;
    this.#catchUp = createCatchUpReporter(lease, context);
    this.#stuck = createStuckReporter(lease, context);
    this.#hiddenEnd = createHiddenEndReporter(context);
  }

  /** Reads from a position on. If the service rejects its cursor, the feed moves to an earlier position. */
  async readFrom(start: Position, signal: AbortSignal): Promise<Next> {
    const { track, context, lease } = this;
    const { at } = track;
    if (start.cursor !== at.cursor || start.since?.getTime() !== at.since?.getTime()) this.#claims.moved();
    try {
      return await readPages(start, this, context, signal);
    } catch (error) {
      const { cursor } = track.at;
      if (cursor === null || !track.refusals.isPersistent(cursor, error)) throw error;
      await recoverCursor(error, cursor, lease, context, signal);
      track.forgetCursors();
      const message = 'the service rejected the cursor of the feed, which falls back to an earlier position';
      throw new CursorRejected(message, error, context.settings.pollIntervalMs);
    }
  }

  onStep(): void {
    this.context.observer.ticked(this.context.settings.stepMs);
  }

  prepare(page: CheckedPage): CommitPage {
    const { lease, store } = this;
    const freshness = { end: page.ending.claim, ...this.#claims.next(page) };
    const from = page.at.cursor;
    const to = page.next ?? from;
    return (content) => store.commitPage({ lease, from, to, freshness, ...content });
  }

  async committed(page: CommittedPage, next: Next): Promise<boolean> {
    const { observer } = this.context;
    const { ending, items } = page;
    observer.freshness(page.asOf);
    reportLoadings(page, observer);
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
