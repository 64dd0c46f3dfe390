import type { FeedFilters, FeedIdentity } from '../../src/sync/ports/index.js';
import { type ModelPass, newPass } from './model-passes.js';

/** A row of `feeds` with its positions and passes. Times in milliseconds since 1970, by the database's clock. */
export interface ModelFeed {
  baseUrl: string;
  readonly createdAt: number;
  startSince: Date | null;
  filters: FeedFilters;
  keepHistory: boolean;
  cursor: string | null;
  /** Of its cursor. */
  origin: string;
  readByTimeUntil: number | null;
  resumeSince: Date | null;
  lastDeliveredAt: Date | null;
  /** The latest delivery time read since the last rewind. */
  deliveredUpTo: Date | null;
  earlier: ModelPosition[];
  completeFrom: number;
  completeAsOf: number | null;
  reconciledAsOf: number | null;
  filtersWidenedAt: number | null;
  endReachedAt: number | null;
  passes: ModelPass[];
  lastPollAt: number | null;
  stuckSince: number | null;
  lastCommitAt: number | null;
  holder: string | null;
  epoch: number;
}

/** A row of `cursor_history`. */
export interface ModelPosition {
  readonly cursor: string | null;
  readonly notedAt: number;
  /** Delivery time up to which the feed was read there. */
  readonly deliveredUpTo: Date | null;
  readonly reason: 'checkpoint' | 'rejected' | 'rewind';
  /** Target of a rewind; null: the feed's start. */
  readonly target?: ModelPosition | null;
}

/** Time before its first start at which a `now` or `live` feed begins, milliseconds. */
const NOW_REACHES_BACK_MS = 3_600_000;

export function newFeed({ name, start, baseUrl, filters, keepHistory }: FeedIdentity, now: number): ModelFeed {
  const startSince = start === 'beginning' ? null : start instanceof Date ? start : new Date(now - NOW_REACHES_BACK_MS);
  const upToNow = { since: null, until: new Date(now) };
  return {
    baseUrl,
    createdAt: now,
    startSince,
    filters,
    keepHistory,
    cursor: null,
    origin: `before the first cursor, since ${now}`,
    readByTimeUntil: null,
    resumeSince: null,
    lastDeliveredAt: null,
    deliveredUpTo: null,
    earlier: [],
    completeFrom: startSince?.getTime() ?? Number.NEGATIVE_INFINITY,
    completeAsOf: null,
    reconciledAsOf: null,
    filtersWidenedAt: null,
    endReachedAt: null,
    passes: start === 'live' ? [newPass({ id: `${name}-history`, kind: 'history', ...upToNow, begunAt: now })] : [],
    lastPollAt: null,
    stuckSince: null,
    lastCommitAt: null,
    holder: null,
    epoch: 0,
  };
}

/** Returns whether every run that the new filters include was included before. */
export function includesNoMore(before: FeedFilters, now: FeedFilters): boolean {
  return (
    now.status.every((status) => before.status.includes(status)) &&
    (before.environment === 'all' || before.environment === now.environment) &&
    (before.documentType === null || before.documentType === now.documentType)
  );
}

/** Returns earlier cursors to fall back to, except rejected ones and those beyond the target of a later rewind. */
export function earlierCursors({ earlier, cursor }: ModelFeed): string[] {
  const rejected = new Set(earlier.flatMap((noted) => (noted.reason === 'rejected' ? [noted.cursor] : [])));
  const offered = earlier.flatMap((noted, index) => {
    const undone = earlier.slice(index).some((later) => {
      if (later.reason !== 'rewind') return false;
      return !(later.target && index <= earlier.indexOf(later.target));
    });
    return noted.cursor === null || noted.cursor === cursor || rejected.has(noted.cursor) || undone
      ? []
      : [noted.cursor];
  });
  return [...new Set(offered.reverse())].slice(0, CURSORS_OFFERED);
}

const CURSORS_OFFERED = 20;
