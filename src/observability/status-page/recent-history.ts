import type { Clock } from '../../core/clock.js';
import type { FeedState } from '../feed-state.js';

/** Length of the history, minutes. */
export const HISTORY_MINUTES = 360;

/** Maximum gap that normal waiting explains, minutes: a pause between two attempts takes up to a minute, and so does an attempt. */
const MAX_GAP_MINUTES = 2;

const MINUTE_MS = 60_000;

/** The figures of this process for one minute of its wall clock. */
export interface RecentMinute {
  /** Minutes since 1970. */
  readonly minute: number;
  /** Highest known lag; null if unknown. */
  readonly lagSeconds: number | null;
  /** Runs that this process inserted or updated; null if it did not lead the feed. */
  readonly runs: number | null;
  /** Failed attempts. */
  readonly failures: number;
}

export type RecentHistory = ReturnType<typeof createRecentHistory>;

/**
 * Keeps figures for each minute of the last six hours, in bounded memory. It has no timer: each call records the lag at that
 * time. Minutes without a call are missing: the process was suspended, not started or hung, and the lag is unknown.
 */
export function createRecentHistory(
  clock: Pick<Clock, 'now' | 'monotonic'>,
  state: Pick<FeedState, 'freshness' | 'lagSeconds' | 'isLeader'>,
) {
  const minutes = new Map<number, RecentMinute>();
  /** Monotonic end of the last gap: a lag that was read before it is unknown, other replicas may have written in the meantime. */
  let lagKnownFrom = Number.NEGATIVE_INFINITY;
  let latest: number | null = null;

  const note = (minute: number, at: number, { runs = 0, failures = 0 } = {}) => {
    const before = minutes.get(minute);
    const readAt = state.freshness()?.readAt ?? Number.NEGATIVE_INFINITY;
    const lagSeconds = readAt >= lagKnownFrom ? state.lagSeconds(at) : null;
    minutes.set(minute, {
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
    if (minute !== latest) evict(minute);
    latest = minute;
  };

  /** Deletes minutes that are too old, or in the future because the clock was set back. */
  const evict = (now: number) => {
    for (const minute of minutes.keys()) {
      if (minute <= now - HISTORY_MINUTES || minute > now) minutes.delete(minute);
    }
  };

  return {
    /** Records that the process is running. */
    awake: () => record(),
    wrote: (runs: number) => record({ runs }),
    failed: () => record({ failures: 1 }),
    /** Returns the known minutes, oldest first. */
    minutes: (): readonly RecentMinute[] => [...minutes.values()].sort((one, other) => one.minute - other.minute),
  };
}

function worst(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}
