import type { Backfill, BackfillCommit, BackfillKind } from '../../src/sync/ports.js';
import type { ModelFeed } from './model-feed.js';

/** A row of `backfills`. Times in milliseconds since 1970, by the database's clock. */
export interface ModelBackfill {
  readonly id: string;
  readonly kind: BackfillKind;
  readonly since: Date | null;
  until: Date;
  cursor: string | null;
  deliveredUpTo: Date | null;
  entries: number;
  stored: number;
  readonly requestedAt: number;
  finishedAt: number | null;
}

/** A stretch must overlap by this much what the feed is complete from to join it. */
const OVERLAP_MS = 3_600_000;

export function newBackfill(id: string, kind: BackfillKind, since: Date | null, until: Date, now: number) {
  const begun = { cursor: null, deliveredUpTo: null, entries: 0, stored: 0, requestedAt: now, finishedAt: null };
  return { id, kind, since, until, ...begun } satisfies ModelBackfill;
}

export function historyOf({ backfills }: ModelFeed): ModelBackfill | undefined {
  return backfills.find(({ kind }) => kind === 'history');
}

export function backfillIsComplete(feed: ModelFeed): boolean {
  const history = historyOf(feed);
  return feed.endReachedAt !== null && (history === undefined || history.finishedAt !== null);
}

/** Requests first, in their order. */
export function nextBackfillOf(feed: ModelFeed): Backfill | null {
  if (feed.lastCommitAt === null) return null;
  const waiting = feed.backfills.filter(({ finishedAt }) => finishedAt === null);
  const next = waiting.find(({ kind }) => kind === 'request') ?? waiting[0];
  if (next === undefined) return null;
  const { id, kind, since, until, cursor, deliveredUpTo, entries, stored } = next;
  return { id, kind, since, until, cursor, deliveredUpTo, entries, stored };
}

/** The backfill, if it stands where the commit believes. */
export function backfillAt(
  feed: ModelFeed,
  { id, from, until, finished, feedHadCursor }: BackfillCommit,
): ModelBackfill | undefined {
  const mayFinish = feedHadCursor || feed.cursor === null;
  return feed.backfills.find(
    (row) =>
      row.id === id &&
      row.finishedAt === null &&
      row.cursor === from &&
      row.until.getTime() === until.getTime() &&
      (!finished || row.kind !== 'history' || mayFinish),
  );
}

export function moveBackfill(
  feed: ModelFeed,
  row: ModelBackfill,
  commit: BackfillCommit,
  runsStored: number,
  now: number,
): void {
  row.cursor = commit.to;
  if (commit.deliveredUpTo !== null && !(row.deliveredUpTo !== null && row.deliveredUpTo > commit.deliveredUpTo)) {
    row.deliveredUpTo = commit.deliveredUpTo;
  }
  row.entries += commit.entries;
  row.stored += runsStored;
  if (!commit.finished) return;
  row.finishedAt = now;
  const from = row.since?.getTime() ?? Number.NEGATIVE_INFINITY;
  if (row.kind === 'history') feed.startSince = row.since;
  const widenedSince = feed.widenedAt !== null && feed.widenedAt >= row.requestedAt;
  const joins = row.kind === 'history' || row.until.getTime() >= feed.completeFrom + OVERLAP_MS;
  if (!widenedSince && joins) feed.completeFrom = Math.min(feed.completeFrom, from);
}
