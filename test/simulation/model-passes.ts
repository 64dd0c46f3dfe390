import { RECENT_PASS_OVERLAP_MS } from '../../src/core/recent-pass.js';
import type { LastPass, NewPass, Pass, PassCommit, PassKind } from '../../src/sync/ports/index.js';
import type { ModelFeed } from './model-feed.js';

/** A row of `passes`. Times in milliseconds since 1970, by the database's clock. */
export interface ModelPass {
  readonly id: string;
  readonly kind: PassKind;
  readonly since: Date | null;
  until: Date;
  cursor: string | null;
  deliveredUpTo: Date | null;
  entries: number;
  stored: number;
  /** Whole milliseconds; identifies the pass together with its id. */
  readonly begunAt: number;
  /** `completeAsOf` of the feed when the pass began; null: it claims no such time. */
  completeAsOf: number | null;
  finishedAt: number | null;
  cancelled: boolean;
}

/** Minimum overlap of a backfill with the complete range to extend it, milliseconds. */
const BACKFILL_OVERLAP_MS = 3_600_000;

type Begun = Pick<ModelPass, 'id' | 'kind' | 'since' | 'until' | 'begunAt'> & Partial<Pick<ModelPass, 'completeAsOf'>>;

export function newPass(begun: Begun): ModelPass {
  const nothing = { cursor: null, deliveredUpTo: null, entries: 0, stored: 0, finishedAt: null, cancelled: false };
  return { completeAsOf: null, ...begun, ...nothing, begunAt: Math.floor(begun.begunAt) };
}

export function historyOf({ passes }: ModelFeed): ModelPass | undefined {
  return passes.find(({ kind }) => kind === 'history');
}

export function initialSyncIsComplete(feed: ModelFeed): boolean {
  const history = historyOf(feed);
  return feed.endReachedAt !== null && (history === undefined || history.finishedAt !== null);
}

/** Returns whether the filters were widened after a full pass began, so that it has not read everything. */
function isOutdated({ kind, begunAt }: Pick<ModelPass, 'kind' | 'begunAt'>, { filtersWidenedAt }: ModelFeed): boolean {
  return kind === 'full' && filtersWidenedAt !== null && begunAt <= filtersWidenedAt;
}

/** Returns whether a pass has read everything up to where the feed was complete when it began. */
function isCompleted({ finishedAt, cancelled, completeAsOf }: ModelPass): boolean {
  return finishedAt !== null && !cancelled && completeAsOf !== null && completeAsOf > Number.NEGATIVE_INFINITY;
}

export function unfinishedPass(feed: ModelFeed, kind: PassKind): ModelPass | undefined {
  return feed.passes.find((pass) => pass.kind === kind && pass.finishedAt === null && !isOutdated(pass, feed));
}

export function passOf({ id, begunAt, kind, since, until, cursor, deliveredUpTo, entries, stored }: ModelPass): Pass {
  return { id, begunAt: new Date(begunAt), kind, since, until, cursor, deliveredUpTo, entries, stored };
}

/** Returns the last pass of a kind. The initial sync counts as a full pass. */
export function lastPassOf(feed: ModelFeed, kind: NewPass['kind'], now: number): LastPass | null {
  const passes = feed.passes.filter(
    (pass) => pass.kind === kind && (pass.finishedAt === null || pass.cancelled || pass.completeAsOf !== null),
  );
  const ended =
    passes.findLast((pass) => pass.finishedAt !== null || isOutdated(pass, feed)) ?? firstReading(feed, kind);
  if (ended === null) return null;
  const completed = passes.findLast(isCompleted);
  return {
    endedMsAgo: isOutdated(ended, feed) ? Number.POSITIVE_INFINITY : now - (ended.finishedAt ?? now),
    completedUntil: completed?.until ?? null,
  };
}

function firstReading(feed: ModelFeed, kind: NewPass['kind']) {
  const { createdAt: begunAt, endReachedAt } = feed;
  if (kind !== 'full' || endReachedAt === null || !initialSyncIsComplete(feed)) return null;
  return { kind, begunAt, finishedAt: Math.max(endReachedAt, historyOf(feed)?.finishedAt ?? endReachedAt) };
}

/** Begins a pass. Returns null if one of its kind is unfinished, or the feed is not complete yet. */
export function beginPassOf(
  feed: ModelFeed,
  { kind, since, until, completeAsOf }: NewPass,
  id: string,
  now: number,
): ModelPass | null {
  if (unfinishedPass(feed, kind) !== undefined) return null;
  for (const pass of feed.passes) {
    if (pass.kind === kind && pass.finishedAt === null) Object.assign(pass, { finishedAt: now, cancelled: true });
  }
  if (feed.completeAsOf === null) return null;
  const claims = Math.min(feed.completeAsOf, completeAsOf.getTime());
  if (kind === 'full' && claims < (feed.filtersWidenedAt ?? Number.NEGATIVE_INFINITY)) return null;
  const { startSince } = feed;
  const latest = since !== null && startSince !== null && startSince > since ? startSince : (since ?? startSince);
  const pass = newPass({ id, kind, since: latest, until, begunAt: now, completeAsOf: claims });
  const completed = feed.passes.findLast((row) => row.kind === kind && isCompleted(row));
  const kept = completed === undefined ? 0 : feed.passes.indexOf(completed);
  feed.passes = [...feed.passes.filter((row, index) => row.kind !== kind || index >= kept), pass];
  return pass;
}

/** Returns the pass if it is at the position that the commit expects. */
export function passAt(
  feed: ModelFeed,
  { id, begunAt, from, until, end, feedOrigin }: PassCommit,
): ModelPass | undefined {
  const mayFinish = !hasGap(feed, feedOrigin);
  return feed.passes.find(
    (row) =>
      row.id === id &&
      row.begunAt === begunAt.getTime() &&
      row.finishedAt === null &&
      row.cursor === from &&
      row.until.getTime() === until.getTime() &&
      (end === 'no' || row.kind !== 'history' || mayFinish),
  );
}

/** Returns whether the feed got its cursor after a page was requested. @param feedOrigin the origin of its cursor before that */
function hasGap({ cursor, origin }: ModelFeed, feedOrigin: string | null): boolean {
  return cursor !== null && origin !== feedOrigin;
}

/** The present, by the database's clock and by that of the process. */
interface Times {
  readonly now: number;
  readonly monotonic: number;
}

/** Returns up to when a pass is complete if a cache repeated a page. */
function completeBehindCache(completeAsOf: number, begunAt: number, cachedAt: number): number {
  if (cachedAt >= completeAsOf) return completeAsOf;
  return cachedAt >= begunAt - RECENT_PASS_OVERLAP_MS ? cachedAt : Number.NEGATIVE_INFINITY;
}

/** @param isEnd whether the pass ends with this page */
export function movePass(
  feed: ModelFeed,
  row: ModelPass,
  commit: PassCommit,
  { runsStored, isEnd, now, monotonic }: { readonly runsStored: number; readonly isEnd: boolean } & Times,
): void {
  row.cursor = commit.to;
  if (commit.deliveredUpTo !== null && !(row.deliveredUpTo !== null && row.deliveredUpTo > commit.deliveredUpTo)) {
    row.deliveredUpTo = commit.deliveredUpTo;
  }
  const cachedAt = commit.cachedAt === null ? Number.POSITIVE_INFINITY : now - monotonic + commit.cachedAt;
  if (row.completeAsOf !== null) {
    row.completeAsOf = completeBehindCache(row.completeAsOf, row.begunAt, cachedAt);
  }
  row.entries += commit.entries;
  row.stored += runsStored;
  if (!isEnd) return;
  row.finishedAt = now;
  if (row.kind === 'history' && feed.cursor === null) continueAfterHistory(feed, row);
  feed.reconciledAsOf = reconciledAsOf(feed, row, now);
  if (row.completeAsOf === Number.NEGATIVE_INFINITY) return;
  if (row.kind !== 'recent') claimRange(feed, row, commit.feedOrigin, cachedAt);
}

/** Returns the later time that is known and not in the future; null if there is none. A future time is from before the clock was set back. */
function reconciledAsOf(feed: ModelFeed, row: ModelPass, now: number): number | null {
  const known = [feed.reconciledAsOf, row.completeAsOf].filter((time) => time !== null && time <= now);
  const latest = Math.max(...known.map(Number));
  return latest === Number.NEGATIVE_INFINITY ? null : latest;
}

/** The feed was read by time until now, which may have left out runs. */
function continueAfterHistory(feed: ModelFeed, { cursor }: ModelPass): void {
  Object.assign(feed, { completeAsOf: null, epoch: feed.epoch + 1 });
  if (feed.resumeSince === null) feed.cursor = cursor;
}

/** @param cachedAt when a cache got the last page; infinite: the service itself responded */
function claimRange(feed: ModelFeed, row: ModelPass, feedOrigin: string | null, cachedAt: number): void {
  const from = row.since?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (row.kind === 'history') feed.startSince = row.since;
  const widenedAt = feed.filtersWidenedAt ?? Number.NEGATIVE_INFINITY;
  const widenedSince = widenedAt >= row.begunAt || Math.min(row.completeAsOf ?? cachedAt, cachedAt) < widenedAt;
  const joins = row.kind !== 'backfill' || row.until.getTime() >= feed.completeFrom + BACKFILL_OVERLAP_MS;
  const byTimeUntil =
    feed.cursor === null ? Number.POSITIVE_INFINITY : (feed.readByTimeUntil ?? Number.NEGATIVE_INFINITY);
  const isByTime = row.until.getTime() < byTimeUntil || hasGap(feed, feedOrigin);
  if (row.kind === 'backfill' && feed.startSince !== null && isByTime) return;
  if (!widenedSince && joins) feed.completeFrom = Math.min(feed.completeFrom, from);
}
