import type { Freshness } from '../../sync/ports/index.js';

/** Returns the one that was read later. Commits and checks of the database may report out of order. */
export function fresher(known: Freshness | null, read: Freshness): Freshness {
  return known === null || read.readAt >= known.readAt ? read : known;
}

/** Returns the lag in seconds: the lag when it was read plus the time since then. Null while unknown. */
export function lagSeconds(asOf: Freshness | null, monotonicNow: number): number | null {
  return asOf === null || asOf.lagMs === null ? null : Math.max(0, asOf.lagMs + monotonicNow - asOf.readAt) / 1000;
}
