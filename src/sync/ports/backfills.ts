import type { EntryBatch, QuarantineEntry } from './entries.js';
import type { CommitOutcome, LeaseGrant } from './store.js';

/** `history`: what lies before the start of a feed that began with its new runs; `request`: a stretch that a person asked for. */
export type BackfillKind = 'history' | 'request';

/** A stretch of the feed that is read beside it, on a durable position of its own. */
export interface Backfill {
  /** A bigint as text. */
  readonly id: string;
  readonly kind: BackfillKind;
  /** Delivery time, service clock; null: the beginning of the history. */
  readonly since: Date | null;
  /** Delivery time, service clock, up to which it reads. */
  readonly until: Date;
  /** Where it stands; null: at `since`. */
  readonly cursor: string | null;
  /** Latest delivery time that it has read, never after `until`. */
  readonly deliveredUpTo: Date | null;
  /** Entries read so far. */
  readonly entries: number;
  /** Runs inserted or updated so far. */
  readonly stored: number;
}

/** A page of a backfill: rows and its own position, never the feed's cursor. */
export interface BackfillCommit {
  readonly lease: LeaseGrant;
  readonly id: string;
  /** The position and the end that the page was read with: the commit is void if others are stored, or the backfill is over. */
  readonly from: string | null;
  readonly until: Date;
  readonly to: string | null;
  readonly batch: EntryBatch;
  readonly quarantine: readonly QuarantineEntry[];
  /** Everything up to its end is committed. The history's end is where the feed becomes complete from its beginning. */
  readonly finished: boolean;
  /**
   * The feed had a cursor when the page was asked for. Where it left its start since then, `since` may have led it past entries
   * that were delivered after this page: the history is not finished by it, and the commit is void.
   */
  readonly feedHadCursor: boolean;
  readonly deliveredUpTo: Date | null;
  /** Entries of this page. */
  readonly entries: number;
  readonly pace: ReadingPace | null;
}

/** How fast a stretch of the feed is being read. */
export interface ReadingPace {
  readonly entriesPerSecond: number;
  /** Until its end is reached, if it goes on like this; null: it does not come nearer. */
  readonly secondsLeft: number | null;
}

/** What is being read: the feed itself, from behind its end, or a backfill. */
export type Reading = 'feed' | BackfillKind;

/** How far a reading is. */
export interface ReadingProgress {
  /** Entries read since it began; of the feed, since this process began to read it. */
  readonly entries: number;
  /** Delivery time, service clock. */
  readonly deliveredUpTo: Date | null;
  /** Null while it is unknown. */
  readonly pace: ReadingPace | null;
}

/** The part of the store that keeps backfills. */
export interface BackfillStore {
  /** What is to be read now: requests first, then the history. Null while the feed itself has read nothing yet. */
  nextBackfill(feed: string): Promise<Backfill | null>;
  /** `fenced` also when its position moved elsewhere, or it was stopped. */
  commitBackfill(commit: BackfillCommit): Promise<CommitOutcome>;
  /** Notes how fast the feed is being read, for `scanfeed status`; null: it is not. Of no effect once the lease is lost. */
  notePace(lease: LeaseGrant, pace: ReadingPace | null): Promise<void>;
}
