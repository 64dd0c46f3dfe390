import type { Committed, EndClaim, Fenced, Poll, Position, QuarantineEntry, RawPage } from '../ports/index.js';
import type { CheckedEntry, Loading } from './check-entries.js';
import type { AnswerTimes } from './service-clock.js';

/*
 * A page of the feed has three forms: received, with the bytes of the response; checked, with what is to be stored; and committed,
 * with what was stored. All have the facts that determine what follows it.
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
  /** Monotonic time at which the last of them was sent. */
  readonly polledAt: number;
}

/** A page as the service answered. Its parsed entries take some ten times the bytes that are reserved for it. */
export interface ReceivedPage extends PolledPage {
  readonly raw: RawPage;
  readonly times: AnswerTimes;
}

/** What a page shows about whether it is the end, before its commit. */
export interface Ending {
  /** What its commit can claim. */
  readonly claim: EndClaim;
  /** Whether it may be the end although its commit does not claim it; a later request for the same position decides. */
  readonly isUnclear: boolean;
  /** The page's position, if it may be the end although it has entries or no cursor. */
  readonly possibleEnd: PossibleEnd | null;
  /** The error of a request that would have shown it. Thrown after the commit, so that it does not withhold the entries. */
  readonly failure?: unknown;
}

/** The position of a dead end that may be the end of the feed. */
export interface PossibleEnd {
  readonly cursor: string | null;
  /** Whether fewer entries follow than were requested, including hidden ones; null: the service refused to list them, or a cache did. */
  readonly isShort: boolean | null;
  /** Number of entries to request next from the position. */
  readonly limit: number;
}

/**
 * What follows a page. `unclear`: it may be the end; a later request for the same position decides. `stuck`: its cursor does
 * not lead further. `fenced`: nothing was stored (`Fenced`).
 */
export type Next = 'more' | 'end' | 'unclear' | 'stuck' | 'fenced';

/** What a page shows about how far the feed was read. */
interface Reach {
  /** The delivery time up to which everything was read with this page ({@link provenDelivery}). */
  readonly provenUpTo: Date | null;
  /** Returns the monotonic time of a delivery time of the service, never after the poll. */
  monotonicTimeOf(deliveredAt: Date): number;
  /** Whether it may be the end, as far as requests can tell. */
  readonly ending: Ending;
}

/** A page to store. Its entries are checked, and have the results that were loaded for them. */
export interface CheckedPage extends PolledPage, Reach {
  readonly entries: readonly CheckedEntry[];
  readonly quarantine: readonly QuarantineEntry[];
  /** Size of its body, bytes. */
  readonly bytes: number;
  /** Returns a delivery time; null if it is ahead of any clock. */
  possibleDelivery(deliveredAt: Date | null): Date | null;
  /** Releases the memory that is reserved for it. */
  release(): void;
}

/** A page that was committed, or pages that were committed together. Refers to none of their entries, so they leave memory. */
export interface CommittedPage extends PolledPage, Reach, Committed {
  /** Monotonic times, milliseconds. */
  readonly commitBegunAt: number;
  readonly committedAt: number;
  /** Monotonic delivery times of the runs that were stored for the first time. */
  readonly deliveries: readonly number[];
  /** The number of its truncated entries by outcome. */
  readonly loadings: Readonly<Record<Loading, number>>;
  /** Whether the result of an entry is pending only for lack of memory. */
  readonly lacksMemory: boolean;
}

/** A page after its commit. */
export type PageOutcome = CommittedPage | Fenced;

/** Returns whether the next page can be requested at once. After a page without entries the caller decides. */
export function leadsFurther({ at, next, items }: PolledPage): boolean {
  return items > 0 && next !== null && next !== at.cursor;
}

/** Returns what is known of a page after its commit, without its entries. */
export function committedPage(
  page: CheckedPage,
  entries: readonly CheckedEntry[],
  { kind, counts, asOf, endClaimed }: Committed,
  times: { readonly commitBegunAt: number; readonly committedAt: number },
): CommittedPage {
  const { at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending } =
    page;
  const stored = new Set(counts.stored);
  const loadings = { resolved: 0, pending: 0, skipped: 0 };
  for (const { loading } of entries) if (loading !== undefined) loadings[loading] += 1;
  return {
    ...{ at, next, cursorUnusable, isCached, items, limit, polls, polledAt, provenUpTo, monotonicTimeOf, ending },
    ...{ kind, counts, asOf, endClaimed, loadings },
    ...times,
    deliveries: entries.flatMap(({ accepted: { run } }) =>
      stored.has(run.scanId) && run.deliveredAt !== null ? [monotonicTimeOf(run.deliveredAt)] : [],
    ),
    lacksMemory: entries.some(({ accepted }) => accepted.pending === 'no_memory'),
  };
}
