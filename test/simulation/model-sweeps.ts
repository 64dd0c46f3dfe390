import type { SweepState } from '../../src/sync/ports.js';
import { backfillIsComplete, historyOf } from './model-backfills.js';
import type { ModelFeed, ModelSweep } from './model-feed.js';

/** As PostgreSQL does, by the time of its beginning. */
export function idOf({ begunAt }: Pick<ModelSweep, 'begunAt'>): string {
  return String(begunAt);
}

/** The sweeps of a feed; the first reading of the history counts as a full one. */
export function sweepStates(feed: ModelFeed, now: number): readonly SweepState[] {
  const sweeps = [...feed.sweeps];
  if (feed.endReachedAt !== null && backfillIsComplete(feed) && !feed.sweeps.has('full')) {
    const { startSince: since, createdAt: begunAt, endReachedAt } = feed;
    const until = new Date(endReachedAt);
    const finishedAt = Math.max(endReachedAt, historyOf(feed)?.finishedAt ?? endReachedAt);
    sweeps.push(['full', { since, until, cursor: null, begunAt, finishedAt, completeAsOf: finishedAt }]);
  }
  return sweeps.map(([kind, { since, until, cursor, begunAt, finishedAt }]) => {
    const overtaken = kind === 'full' && begunAt < (feed.widenedAt ?? Number.NEGATIVE_INFINITY);
    const ageMs = overtaken ? Number.POSITIVE_INFINITY : now - (finishedAt ?? begunAt);
    return { kind, id: idOf({ begunAt }), finished: finishedAt !== null || overtaken, ageMs, since, until, cursor };
  });
}
