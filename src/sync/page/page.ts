import type { Poll, Position, QuarantineEntry, RawPage } from '../ports/index.js';
import type { CheckedEntry } from './check-entries.js';
import type { AnswerTimes } from './service-clock.js';

/*
 * A page of the feed has two forms until it is committed: received, with the bytes of the response, and checked, with what is to
 * be stored. Both have the facts that determine what follows it.
 */

/** What determines what follows a page. */
export interface PolledPage {
  readonly at: Position;
  /** The service's `nextCursor`; null if it sent none that can be stored. */
  readonly next: string | null;
  /** Whether the service sent a `nextCursor` that cannot be stored or sent. Then more may follow. */
  readonly cursorUnusable: boolean;
  /** Whether a cache gave it. Then it may be the same response as the one before. */
  readonly isCached: boolean;
  /** Number of entries received. */
  readonly items: number;
  /** Number of entries requested. */
  readonly limit: number;
  /** Its polls: one, or one for each of the pages that are committed together. */
  readonly polls: readonly Poll[];
}

/** A page as the service answered. Its parsed entries take some ten times the bytes that are reserved for it. */
export interface ReceivedPage extends PolledPage {
  readonly raw: RawPage;
  readonly times: AnswerTimes;
}

/** A page to store. Its entries are checked, and have the results that were loaded for them. */
export interface CheckedPage extends PolledPage {
  readonly entries: readonly CheckedEntry[];
  readonly quarantine: readonly QuarantineEntry[];
  /** Size of its body, bytes. */
  readonly bytes: number;
  /** Monotonic time at which the poll was sent. */
  readonly polledAt: number;
  /** The delivery time up to which everything was read with this page ({@link provenDelivery}). */
  readonly provenUpTo: Date | null;
  /** Returns the monotonic time of a delivery time of the service, never after the poll. */
  monotonicTimeOf(deliveredAt: Date): number;
  /** Returns a delivery time; null if it is ahead of any clock. */
  possibleDelivery(deliveredAt: Date | null): Date | null;
}

/** Returns whether the next page can be requested at once. After a page without entries the caller decides. */
export function leadsFurther({ at, next, items }: PolledPage): boolean {
  return items > 0 && next !== null && next !== at.cursor;
}
