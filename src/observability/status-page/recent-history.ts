import type { Clock } from '../../core/clock.js';
import type { Freshness } from '../../sync/ports/index.js';
import { fresher, lagSeconds } from '../metrics/freshness.js';

/** How far the memory reaches back. */
export const REMEMBERED_MINUTES = 360;

/** Waiting between two tries takes up to a minute, and a try as long: a longer silence was no waiting. */
const SILENT_MINUTES = 2;

const MINUTE_MS = 60_000;

/** What this process knew in one minute of its wall clock. */
export interface RecentMinute {
  /** Minutes since 1970. */
  readonly minute: number;
  /** The worst lag known in it; null: nothing was known. */
  readonly lagSeconds: number | null;
  /** Runs that this process inserted or updated; null: it did not hold the feed. */
  readonly runs: number | null;
  /** Tries that failed. */
  readonly failures: number;
}

export type RecentHistory = ReturnType<typeof createRecentHistory>;

/**
 * The last six hours, a figure a minute, in a bounded memory. It has no timer: whatever is told shows that the process is
 * awake, and what it knows of the lag then. Minutes in which nothing was told are missing: asleep, not yet started, or
 * hung, the process knew nothing, least of all that nothing was late.
 */
export function createRecentHistory(clock: Pick<Clock, 'now' | 'monotonic'>) {
  const minutes = new Map<number, RecentMinute>();
  let asOf: Freshness | null = null;
  let leaderUntil: number | null = null;
  let latest: number | null = null;

  const note = (minute: number, at: number, { runs = 0, failures = 0 } = {}) => {
    const before = minutes.get(minute);
    const leads = leaderUntil !== null && at < leaderUntil;
    minutes.set(minute, {
      minute,
      lagSeconds: worst(before?.lagSeconds ?? null, lagSeconds(asOf, at)),
      runs: leads || runs > 0 || before?.runs != null ? (before?.runs ?? 0) + runs : null,
      failures: (before?.failures ?? 0) + failures,
    });
  };

  /** Also fills the minutes just waited through, with the lag at their ends. */
  const told = (what = {}) => {
    const [now, at] = [clock.now(), clock.monotonic()];
    const minute = Math.floor(now / MINUTE_MS);
    const silent = latest === null ? 0 : minute - latest - 1;
    if (silent <= SILENT_MINUTES) {
      for (let ago = silent; ago > 0; ago--) note(minute - ago, at - (now % MINUTE_MS) - (ago - 1) * MINUTE_MS);
    } else {
      asOf = null; // others may have written meanwhile
    }
    note(minute, at, what);
    if (minute !== latest) forget(minute);
    latest = minute;
  };

  /** Also those ahead of a clock that was set back. */
  const forget = (now: number) => {
    for (const minute of minutes.keys()) {
      if (minute <= now - REMEMBERED_MINUTES || minute > now) minutes.delete(minute);
    }
  };

  return {
    /** Something was told. */
    awake: () => told(),
    knows(read: Freshness): void {
      told(); // the lag is at its worst right before
      asOf = fresher(asOf, read);
      told();
    },
    /** The feed is ours up to this monotonic time; null: not ours. */
    leading(until: number | null): void {
      leaderUntil = until;
      told();
    },
    wrote: (runs: number) => told({ runs }),
    failed: () => told({ failures: 1 }),
    /** Oldest first, without those in which nothing was told. */
    minutes: (): readonly RecentMinute[] => [...minutes.values()].sort((one, other) => one.minute - other.minute),
  };
}

function worst(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}
