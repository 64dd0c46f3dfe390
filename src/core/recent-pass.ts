/**
 * A recent pass begins this much before the end of the last one, milliseconds, because the interface does not define which
 * time of a run `since` applies to.
 */
export const RECENT_PASS_OVERLAP_MS = 10 * 60_000;
