import type { LeaderContext } from '../context.js';
import type { CheckedPage } from '../page/page.js';
import { readServiceDate } from '../page/probe.js';
import type { LeaseGrant, Pass, Position } from '../ports/index.js';
import { findOverlap, isRejected } from '../recovery/recover-cursor.js';

/**
 * The start of each slice of a pass: the position to read from, and the origin that the feed's cursor has then. A slice starts from the
 * stored cursor. If the service rejects that, the next slice falls back to an earlier position.
 */
export class SliceStart {
  /** The stored cursor, if the service rejects it, and its error. */
  #rejected: { readonly cursor: string; readonly refusal: unknown } | null = null;
  /** The origin of the feed's cursor before the pages of the slice were requested, and the monotonic time since when it is known. */
  #feedOrigin: string | null = null;
  #originKnownSince = 0;

  constructor(
    private readonly lease: LeaseGrant,
    private readonly context: LeaderContext,
  ) {}

  /**
   * Returns the position of the next slice.
   * @throws the error of a rejected cursor if it remains unclear whether the key belongs to another organization
   * @throws AnotherOrganization
   */
  async find(pass: Pass, signal: AbortSignal): Promise<Position> {
    await this.#readFeedOrigin();
    const { cursor, since } = pass;
    if (this.#rejected?.cursor !== cursor) this.#rejected = null; // another writer has moved the pass
    if (this.#rejected === null) return { cursor, since };
    return (await this.#findOverlap(pass, this.#rejected.refusal, signal)) ?? { cursor: null, since };
  }

  /**
   * Called when the service may reject the cursor of the slice. Makes the next slice fall back.
   * @throws the refusal if the service does not reject the cursor, or the slice has fallen back already
   */
  async fallBack(cursor: string, refusal: unknown, signal: AbortSignal): Promise<void> {
    if (this.#rejected !== null || !(await isRejected(cursor, refusal, this.context, signal))) throw refusal;
    this.#rejected = { cursor, refusal };
  }

  /** Called after a commit: another cursor is stored now. */
  committed(): void {
    this.#rejected = null;
  }

  /**
   * Returns the origin of the feed's cursor before a page was requested. Null if the feed had no cursor then, or may have had none: a
   * cache can give a page that was requested before.
   */
  originBefore(page: CheckedPage): string | null {
    const isOlder = page.isCached && page.polledAt < this.#originKnownSince;
    return isOlder ? null : this.#feedOrigin;
  }

  async #readFeedOrigin(): Promise<void> {
    const { store, clock } = this.context;
    const { origin } = await store.readPosition(this.lease.feed);
    if (origin !== this.#feedOrigin) this.#originKnownSince = clock.monotonic();
    this.#feedOrigin = origin;
  }

  /**
   * Finds a position a day before what the pass has read. Null if such a position may skip unread entries. Unlike the feed, a
   * pass has no earlier cursors.
   */
  async #findOverlap({ deliveredUpTo, since }: Pass, refusal: unknown, signal: AbortSignal): Promise<Position | null> {
    if (deliveredUpTo === null) return null;
    const { context } = this;
    const probe = { filters: context.read.filters, start: { since: deliveredUpTo } };
    const serviceDate = await readServiceDate(probe, 'background', context, signal);
    const read = { deliveredUpTo, startSince: since, feed: this.lease.feed };
    return findOverlap(read, refusal, serviceDate, 'background', context, signal);
  }
}
