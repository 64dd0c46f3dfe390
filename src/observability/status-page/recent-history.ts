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

/** Numbers of a slot: minute, lag, runs and failures. NaN: none. */
const WIDTH = 4;

/**
 * Keeps figures for each minute of the last six hours, in bounded memory. It has no timer: each call records the lag at that
 * time. Minutes without a call are missing: the process was suspended, not started or hung, and the lag is unknown.
 */
export function createRecentHistory(clock: Clock, state: FeedState) {
  /** A slot for each minute, which replaces the one six hours earlier. Objects would take three times the memory. */
  const numbers = new Float64Array(WIDTH * HISTORY_MINUTES).fill(Number.NaN);
  /** Monotonic end of the last gap: a lag that was read before it is unknown, other replicas may have written in the meantime. */
  let lagKnownFrom = Number.NEGATIVE_INFINITY;
  let latest: number | null = null;

  const read = (slot: number): RecentMinute => {
    const [minute = Number.NaN, lagSeconds, runs, failures = 0] = numbers.subarray(WIDTH * slot, WIDTH * (slot + 1));
    return { minute, lagSeconds: orNull(lagSeconds), runs: orNull(runs), failures };
  };
  const note = (minute: number, at: number, { runs = 0, failures = 0 } = {}) => {
    const slot = minute % HISTORY_MINUTES;
    const stored = read(slot);
    const before = stored.minute === minute ? stored : null;
    const readAt = state.freshness()?.readAt ?? Number.NEGATIVE_INFINITY;
    const lag = worst(before?.lagSeconds ?? null, readAt >= lagKnownFrom ? state.lagSeconds(at) : null);
    const isLed = state.isLeader(at) || runs > 0 || before?.runs != null;
    const figures = [lag ?? Number.NaN, isLed ? (before?.runs ?? 0) + runs : Number.NaN];
    numbers.set([minute, ...figures, (before?.failures ?? 0) + failures], WIDTH * slot);
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
    latest = minute;
  };

  return {
    /** Records that the process is running. */
    awake: () => record(),
    wrote: (runs: number) => record({ runs }),
    failed: () => record({ failures: 1 }),
    /** Returns the known minutes, oldest first. */
    minutes: (): readonly RecentMinute[] => {
      const last = latest ?? Number.NaN;
      return (
        Array.from({ length: HISTORY_MINUTES }, (_, slot) => read(slot))
          // Other minutes are too old, or in the future because the clock was set back.
          .filter(({ minute }) => minute > last - HISTORY_MINUTES && minute <= last)
          .sort((one, other) => one.minute - other.minute)
      );
    },
  };
}

function worst(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

function orNull(number = Number.NaN): number | null {
  return Number.isNaN(number) ? null : number;
}
