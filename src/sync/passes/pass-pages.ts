import type { LeaderContext } from '../context.js';
import type { CheckedEntry } from '../page/check-entries.js';
import { reachesBeyond } from '../page/end-of-feed.js';
import type { CheckedPage, CommittedPage, Next } from '../page/page.js';
import type { LeaseGrant, Pass, PassKind, PassMove, ReadingPace } from '../ports/index.js';
import { createPaceMeter } from '../progress/reading-pace.js';
import { Pages } from '../read-pages.js';
import { assertFeedAccepted } from '../recovery/rejected-cursor.js';
import type { IdleGate } from '../waiting/idle-gate.js';
import { withTimeout } from '../waiting/with-timeout.js';
import { PASS_POLICIES, type PassPolicy } from './pass-policy.js';
import { SliceStart } from './slice-start.js';

/** Maximum duration of a slice, milliseconds. The next slice continues from the stored position. */
const SLICE_MS = 30_000;

/** Maximum number of pages of a pass in memory. It commits one at a time, so it needs fewer than the feed. */
const MAX_HELD_PAGES = 10;

/** Maximum time that a page waits for the feed to be idle, milliseconds. After that it is discarded and read again later. */
const IDLE_TIMEOUT_MS = 10_000;

/** Reads the pages of a pass in slices, and commits each with the position after it. */
export class PassPages extends Pages {
  readonly what: PassKind;
  readonly priority = 'background';
  readonly maxHeld: number;
  readonly maxJoined = 1;
  readonly maxCommits = 1;
  readonly #policy: PassPolicy;
  readonly #start: SliceStart;
  readonly #meter = createPaceMeter();
  #pass: Pass;
  #pace: ReadingPace | null = null;
  #sliceEndsAt = 0;

  constructor(
    pass: Pass,
    lease: LeaseGrant,
    context: LeaderContext,
    private readonly idle: IdleGate,
  ) {
    super(lease, context);
    this.what = pass.kind;
    this.#pass = pass;
    this.#policy = PASS_POLICIES[pass.kind];
    this.#start = new SliceStart(lease, context);
    this.maxHeld = this.#policy.findsSkipped ? 1 : Math.min(context.settings.maxHeldPages, MAX_HELD_PAGES);
  }

  /** The pass after its last commit. */
  get pass(): Pass {
    return this.#pass;
  }

  /** Returns whether this is the pass that is being read. */
  isOf(pass: Pass | null): boolean {
    return this.#pass.id === pass?.id && this.#pass.begunAt.getTime() === pass.begunAt.getTime();
  }

  /**
   * Reads for one slice.
   * @param pass as it is stored: a commit whose outcome is unknown may have moved it
   */
  async readSlice(pass: Pass, signal: AbortSignal): Promise<Next> {
    this.#pass = pass;
    if (this.#policy.waitsForFeed) await this.idle.wait(signal);
    const start = await this.#start.find(pass, signal);
    this.#sliceEndsAt = this.context.clock.monotonic() + SLICE_MS;
    return this.readFrom(start, signal);
  }

  override isLast(page: CheckedPage): boolean {
    return this.#policy.endsAtUntil && reachesBeyond(page, this.#pass.until);
  }

  protected override async admit(page: CheckedPage, signal: AbortSignal): Promise<CheckedPage | null> {
    if (this.#policy.waitsForFeed && !(await this.#waitForIdle(signal))) return null;
    signal.throwIfAborted();
    if (page.at.cursor === null) await assertFeedAccepted(this.lease.feed, this.context, signal);
    return this.#policy.findsSkipped ? this.#withoutLaterEntries(page) : page;
  }

  /** Waits for the feed to be idle. Returns false if that takes long: then the pages must release their memory for others. */
  async #waitForIdle(signal: AbortSignal): Promise<boolean> {
    const { idle, context } = this;
    if (idle.isOpen) return true;
    await withTimeout(context.clock, IDLE_TIMEOUT_MS, signal, (until, startTimer) => {
      startTimer();
      return idle.wait(until);
    });
    return idle.isOpen;
  }

  /** Leaves entries that were delivered after the end of the pass to the cursor. */
  #withoutLaterEntries(page: CheckedPage): CheckedPage {
    const { until } = this.#pass;
    // The cursor is far ahead of a full page before the end, so nothing on it can be left to the cursor. Its delivery times are later
    // than the end only if the service sets them in each response.
    const isBeforeEnd = page.items >= page.limit && !reachesBeyond(page, until);
    if (isBeforeEnd) return page;
    const deliveryOf = (entry: CheckedEntry) => page.possibleDelivery((entry.result ?? entry).accepted.run.deliveredAt);
    return { ...page, entries: page.entries.filter((entry) => (deliveryOf(entry) ?? until) <= until) };
  }

  moveBy(page: CheckedPage): PassMove {
    // `from` is the stored cursor, which the fence compares. If the service rejects it, the page was read from another position.
    const { id, begunAt, until, cursor: from } = this.#pass;
    const to = page.next ?? page.at.cursor;
    return {
      ...{ lease: this.lease, id, begunAt, until, from, to, end: page.ending.claim },
      ...{ feedOrigin: this.#start.originBefore(page), pace: this.#pace, entries: page.items },
      deliveredUpTo: deliveredUpTo(page, until),
      cachedAt: page.isCached ? page.polledAt : null,
    };
  }

  protected async committed(page: CommittedPage, next: Next, signal: AbortSignal): Promise<boolean> {
    const { clock, observer } = this.context;
    const { counts } = page;
    this.#start.committed();
    this.#move(page);
    // Stored revisions that only lacked a value were not skipped.
    const skipped = { first: counts.inserted, later: counts.updated - counts.filled };
    if (!this.#policy.findsSkipped) this.reportLoadings(page);
    else if (skipped.first + skipped.later > 0) observer.reconciled(skipped);
    if (page.ending.failure !== undefined) throw page.ending.failure;
    if (next === 'stuck') this.forgetCursors(); // after the pause the same cursors may return
    const { pauseMs } = this.#policy;
    if (next === 'more' && pauseMs > 0) await clock.sleep(pauseMs, signal);
    return clock.monotonic() < this.#sliceEndsAt;
  }

  /** Updates the pass after a commit, and reports its progress. */
  #move(page: CommittedPage): void {
    const { clock, observer } = this.context;
    const { kind, until, ...before } = this.#pass;
    const upTo = later(before.deliveredUpTo, deliveredUpTo(page, until));
    const entries = before.entries + page.items;
    const stored = before.stored + page.counts.inserted + page.counts.updated;
    this.#pass = { ...this.#pass, cursor: page.next ?? page.at.cursor, deliveredUpTo: upTo, entries, stored };
    const leftMs = upTo === null ? null : until.getTime() - upTo.getTime();
    this.#pace = this.#meter.measure(clock.monotonic(), page.items, leftMs);
    observer.reading(kind, { entries, deliveredUpTo: upTo, pace: this.#pace });
  }

  protected fallBack(cursor: string, refusal: unknown, signal: AbortSignal): Promise<void> {
    return this.#start.fallBack(cursor, refusal, signal);
  }
}

function deliveredUpTo({ provenUpTo }: CheckedPage | CommittedPage, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
