import type { EndClaim, FeedMove, LeaseGrant, PageContent } from './commits.js';

/**
 * `recent` and `full` find what the cursor skipped, in the recent past and in everything; `history` is what was delivered
 * before the start of a live feed; `backfill` is a range that an operator requested.
 */
export type PassKind = 'recent' | 'full' | 'history' | 'backfill';

/** A pass reads the feed from a position to an end. It has a stored position of its own. Only a history pass can move the feed's cursor, at its end. */
export interface Pass {
  /** A bigint as text. After a failover that loses commits, another pass may get the same one. */
  readonly id: string;
  /** When it began, by the database's clock; identifies the pass together with its id. */
  readonly begunAt: Date;
  readonly kind: PassKind;
  /** The delivery time at which it begins, by the service's clock; null: the beginning of the history. */
  readonly since: Date | null;
  /** The delivery time at which it ends, by the service's clock. */
  readonly until: Date;
  /** The cursor after its last page; null: it has none yet. */
  readonly cursor: string | null;
  /** The latest delivery time that it has read, never after `until`. */
  readonly deliveredUpTo: Date | null;
  /** Entries read. */
  readonly entries: number;
  /** Runs inserted or updated. */
  readonly stored: number;
}

/** When passes of a kind last ended. */
export interface LastPass {
  /** Milliseconds since the last one ended; infinite if the filters have widened since it began. */
  readonly endedMsAgo: number;
  /**
   * End, as a delivery time, of the last pass that read everything up to where the feed was complete; null: there is none.
   * Requested passes with their own `until` do not count.
   */
  readonly completedUntil: Date | null;
}

/** A pass that the engine starts. */
export interface NewPass extends Pick<Pass, 'since' | 'until'> {
  readonly kind: 'recent' | 'full';
  /** `until` by the database's clock. When the pass has ended, the feed is reconciled up to this time at most. */
  readonly completeAsOf: Date;
}

/** How the commit of a page moves a pass, and what it claims. */
export interface PassMove extends Omit<FeedMove, 'freshness'> {
  readonly id: string;
  readonly begunAt: Date;
  /** The end that the page was read with. Nothing is committed if another one is stored, or the pass has ended. */
  readonly until: Date;
  /** Whether the pass ends with this page, so that the feed can claim what it proves. */
  readonly end: EndClaim;
  /**
   * The origin of the feed's cursor before the page was requested; null: it had none, or a cache gave a page that may be older. If it is
   * another one now, `since` may have skipped entries that were delivered after this page. Then nothing is committed of a page that may finish a history, and a backfill extends nothing.
   */
  readonly feedOrigin: string | null;
  readonly deliveredUpTo: Date | null;
  /** Entries of this page. */
  readonly entries: number;
  /**
   * Monotonic time of the request whose response a cache repeated; null: the service itself responded. The pass claims no later time,
   * and nothing if the time is earlier than the pass began by more than recent passes overlap.
   */
  readonly cachedAt: number | null;
  readonly pace: ReadingPace | null;
}

/** A page of a pass, committed with the pass's own position. */
export type PassCommit = PassMove & PageContent;

/** How fast the feed or a pass is being read. */
export interface ReadingPace {
  readonly entriesPerSecond: number;
  /** Estimated seconds until its end; null: it does not get closer. */
  readonly secondsLeft: number | null;
}

/** Subject of a progress report: the feed while it catches up, or a pass. */
export type Reading = 'feed' | PassKind;

/** Progress of the feed or of a pass. */
export interface ReadingProgress {
  /** Entries read since it began; of the feed, since this process began to read it. */
  readonly entries: number;
  /** Delivery time, service clock. */
  readonly deliveredUpTo: Date | null;
  /** Null while it is unknown. */
  readonly pace: ReadingPace | null;
}

/** The part of the store that keeps passes. */
export interface PassStore {
  /** The oldest unfinished pass of this kind. Null until the feed has read its first page: its service may still change. */
  nextPass(feed: string, kind: PassKind): Promise<Pass | null>;
  /** Null if no pass of this kind has ended. The initial sync counts as a full pass. */
  readLastPass(feed: string, kind: NewPass['kind']): Promise<LastPass | null>;
  /** Starts a pass. Null if the lease was lost, one of its kind is unfinished, or the freshness of the feed is unknown. */
  beginPass(lease: LeaseGrant, pass: NewPass): Promise<Pass | null>;
  /** Stores how fast the feed is catching up, for `scanfeed status`; null: it has caught up. No effect if the lease was lost. */
  storePace(lease: LeaseGrant, pace: ReadingPace | null): Promise<void>;
}
