import type { Freshness } from '../../sync/ports/index.js';

/** The one that was read last, whichever of a commit and a look at the database reported it last. */
export function fresher(known: Freshness | null, read: Freshness): Freshness {
  return known === null || read.readAt >= known.readAt ? read : known;
}

/** Seconds by which the data lags behind: its age when it was read, and the time since. Null while unknown. */
export function lagSeconds(asOf: Freshness | null, monotonicNow: number): number | null {
  return asOf === null || asOf.lagMs === null ? null : Math.max(0, asOf.lagMs + monotonicNow - asOf.readAt) / 1000;
}
