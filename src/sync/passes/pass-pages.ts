import type { Clock } from '../../core/clock.js';
import type { LeaderContext } from '../context.js';
import type { CheckedEntry } from '../page/check-entries.js';
import { cursorRejection } from '../page/cursors.js';
import { reachesBeyond } from '../page/end-of-feed.js';
import type { CheckedPage, CommittedPage, Next } from '../page/page.js';
import { listsAnything, readServiceDate } from '../page/probe.js';
import type { LeaseGrant, Pass, PassKind, PassMove, Position, ReadingPace } from '../ports/index.js';
import { createPaceMeter } from '../progress/reading-pace.js';
import { Pages } from '../read-pages.js';
import { findOverlap, isRejected } from '../recovery/recover-cursor.js';
import { CursorRejected } from '../recovery/rejected-cursor.js';
import type { IdleGate } from '../waiting/idle-gate.js';
import { withTimeout } from '../waiting/with-timeout.js';
import { PASS_POLICIES, type PassPolicy } from './pass-policy.js';

/** Maximum duration of a slice, milliseconds. The next slice continues from the stored position. */
const SLICE_MS = 30_000;

/** Maximum number of pages of a pass in memory. It commits one at a time, so it needs fewer than the feed. */
const MAX_HELD_PAGES = 10;

/** Maximum time that a page waits for the feed to be idle, milliseconds. After that it is discarded and read again later. */
const IDLE_TIMEOUT_MS = 10_000;

/** A pass waits until the feed continues from another position, or holds as long as the feed does. */
const FEED_REJECTED =
  "the service rejects the feed's own cursor, perhaps because the key belongs to another organization: passes store nothing until the feed continues";

/** Reads the pages of a pass in slices, and commits each with the position after it. */
export class PassPages extends Pages {
  readonly what: PassKind;
  readonly priority = 'background';
  readonly maxHeld: number;
  readonly maxJoined = 1;
  readonly maxCommits = 1;
  readonly #policy: PassPolicy;
  readonly #meter = createPaceMeter();
  #pass: Pass;
  #pace: ReadingPace | null = null;
  /**
   * The stored cursor, if the service rejects it, and the error. Set by the slice whose cursor was rejected; the start of the next slice
   * falls back; forgotten after the first commit from there, or if another cursor is stored.
   */
  #rejected: { readonly cursor: string; readonly refusal: unknown } | null = null;
  /** The origin of the feed's cursor before the pages of the slice were requested, and the monotonic time since when it is known. */
  #feedOrigin: string | null = null;
  #originKnownSince = 0;
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
    const { lease, context, idle } = this;
    this.#pass = pass;
    if (this.#policy.waitsForFeed) await idle.wait(signal);
    const { origin } = await context.store.readPosition(lease.feed);
    if (origin !== this.#feedOrigin) this.#originKnownSince = context.clock.monotonic();
    this.#feedOrigin = origin;
    const start = await this.#findStart(signal);
    this.#sliceEndsAt = context.clock.monotonic() + SLICE_MS;
    return this.readFrom(start, signal);
  }

  protected async fallBack(cursor: string, refusal: unknown, signal: AbortSignal): Promise<void> {
    const isOwn = cursor === this.#pass.cursor && this.#rejected === null;
    if (!isOwn || !(await isRejected(cursor, refusal, this.context, signal))) throw refusal;
    this.#rejected = { cursor, refusal };
  }

  /**
   * Returns the stored position, or an earlier one if the service rejects its cursor: a cursor from about a day before what the pass has
   * read, or its beginning if such a cursor could skip unread entries. Unlike the feed, a pass has no earlier cursors.
   * @throws the refusal if it remains unclear whether the key belongs to another organization
   * @throws AnotherOrganization
   */
  async #findStart(signal: AbortSignal): Promise<Position> {
    const { context } = this;
    const { cursor, since, deliveredUpTo } = this.#pass;
    if (this.#rejected === null || this.#rejected.cursor !== cursor) {
      this.#rejected = null;
      return { cursor, since };
    }
    if (deliveredUpTo === null) return { cursor: null, since };
    const probe = { filters: context.read.filters, start: { since: deliveredUpTo } };
    const serviceDate = await readServiceDate(probe, 'background', context, signal);
    const read = { deliveredUpTo, startSince: since, feed: this.lease.feed };
    const overlap = await findOverlap(read, this.#rejected.refusal, serviceDate, 'background', context, signal);
    return overlap ?? { cursor: null, since };
  }

  override isLast(page: CheckedPage): boolean {
    return this.#policy.endsAtUntil && reachesBeyond(page, this.#pass.until);
  }

  protected override async admit(page: CheckedPage, signal: AbortSignal): Promise<CheckedPage | null> {
    if (this.#policy.waitsForFeed && !(await waitForIdle(this.idle, this.context.clock, signal))) return null;
    signal.throwIfAborted();
    if (page.at.cursor === null) await this.#assertFeedIsAccepted(signal);
    // A full page before the end may have its times from the response. Nothing on it is left to the cursor, which is far ahead.
    const { until } = this.#pass;
    const isBeforeEnd = page.items >= page.limit && !reachesBeyond(page, until);
    return this.#policy.findsSkipped && !isBeforeEnd ? withoutLaterEntries(page, until) : page;
  }

  /**
   * Checks that the service still accepts the feed's own cursor, before a page that was requested without a cursor is stored. If the key
   * belongs to another organization, so does such a page, and nothing in it shows that. If the cursor is rejected, the feed determines
   * the organization (promise 8), which is impossible once runs of another one are stored.
   */
  async #assertFeedIsAccepted(signal: AbortSignal): Promise<void> {
    const { service, store, read } = this.context;
    const { cursor } = await store.readPosition(this.lease.feed);
    if (cursor === null) return;
    await listsAnything(service, { filters: read.filters, start: { cursor } }, signal).catch((error) => {
      throw cursorRejection(error) === null ? error : new CursorRejected(FEED_REJECTED, error);
    });
  }

  moveBy(page: CheckedPage): PassMove {
    // The stored cursor, which the fence compares. If the service rejects it, the page was read from another position.
    const { id, begunAt, until, cursor: from } = this.#pass;
    const to = page.next ?? page.at.cursor;
    // A cache can give a page that was requested before the feed had its cursor.
    const isOlder = page.isCached && page.polledAt < this.#originKnownSince;
    return {
      ...{ lease: this.lease, id, begunAt, until, from, to, end: page.ending.claim },
      ...{ feedOrigin: isOlder ? null : this.#feedOrigin, pace: this.#pace, entries: page.items },
      deliveredUpTo: deliveredUpTo(page, until),
    };
  }

  protected async committed(page: CommittedPage, next: Next, signal: AbortSignal): Promise<boolean> {
    const { clock, observer } = this.context;
    const { counts } = page;
    this.#rejected = null;
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
}

/** Waits a short time for the feed to be idle. Returns whether it is; if not, the pages must release their memory for others. */
async function waitForIdle(idle: IdleGate, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (idle.isOpen) return true;
  await withTimeout(clock, IDLE_TIMEOUT_MS, signal, (until, startTimer) => {
    startTimer();
    return idle.wait(until);
  });
  return idle.isOpen;
}

function withoutLaterEntries(page: CheckedPage, until: Date): CheckedPage {
  const deliveryOf = (entry: CheckedEntry) => page.possibleDelivery((entry.result ?? entry).accepted.run.deliveredAt);
  return { ...page, entries: page.entries.filter((entry) => (deliveryOf(entry) ?? until) <= until) };
}

function deliveredUpTo({ provenUpTo }: CheckedPage | CommittedPage, until: Date): Date | null {
  return provenUpTo !== null && provenUpTo > until ? until : provenUpTo;
}

function later(a: Date | null, b: Date | null): Date | null {
  return a === null || (b !== null && b > a) ? b : a;
}
