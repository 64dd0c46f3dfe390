import type { Clock } from '../../core/clock.js';
import type { FeedState } from '../feed-state.js';
import { createMinuteRing, type RecentMinute } from './minute-ring.js';

/** Length of the history, minutes. */
export const HISTORY_MINUTES = 360;

/** Maximum gap that normal waiting explains, minutes: a pause between two attempts takes up to a minute, and so does an attempt. */
const MAX_GAP_MINUTES = 2;

const MINUTE_MS = 60_000;

/**
 * Keeps figures for each minute of the last six hours, in bounded memory. It has no timer: each call records the lag at that
 * time. Minutes without a call are missing: the process was suspended, not started or hung, and the lag is unknown.
 */
export function createRecentHistory(clock: Clock, state: FeedState) {
  const minutes = createMinuteRing(HISTORY_MINUTES);
  /** Monotonic end of the last gap: a lag that was read before it is unknown, other replicas may have written in the meantime. */
  let lagKnownFrom = Number.NEGATIVE_INFINITY;
  let latest: number | null = null;

  const note = (minute: number, at: number, { runs = 0, failures = 0 } = {}) => {
    const before = minutes.get(minute);
    const readAt = state.freshness()?.readAt ?? Number.NEGATIVE_INFINITY;
    const lagSeconds = readAt >= lagKnownFrom ? state.lagSeconds(at) : null;
    minutes.set({
      minute,
      lagSeconds: worst(before?.lagSeconds ?? null, lagSeconds),
      runs: state.isLeader(at) || runs > 0 || before?.runs != null ? (before?.runs ?? 0) + runs : null,
      failures: (before?.failures ?? 0) + failures,
    });
  };

  /** Records counts, and fills the minutes of a wait with the lag at their ends. */
  const record = (counts = {}) => {
    const [now, at] = [clock.now(), clock.monotonic()];
    const minute = Math.floor(now / MINUTE_MS);
    const gap = latest === null ? 0 : minute - latest - 1;
    if (gap <= MAX_GAP_MINUTES) {
      for (let ago = gap; ago > 0; ago--) note(minute - ago, at - (now % MINUTE_MS) - (ago - 1) * MINUTE_MS);
    } else {
      lagKnownFrom = at;
    }
    note(minute, at, counts);
    // The others are too old, or in the future because the clock was set back.
    if (minute !== latest) minutes.keep(minute - HISTORY_MINUTES + 1, minute);
    latest = minute;
  };

  return {
    /** Records that the process is running. */
    awake: () => record(),
    wrote: (runs: number) => record({ runs }),
    failed: () => record({ failures: 1 }),
    /** Returns the known minutes, oldest first. */
    minutes: (): readonly RecentMinute[] => minutes.all(),
  };
}

function worst(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}
