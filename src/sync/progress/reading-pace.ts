import type { ReadingPace } from '../ports/index.js';

/** Maximum time span over which a pace is measured, milliseconds. */
const WINDOW_MS = 60_000;
/** Minimum time span over which a pace is measured, milliseconds. */
const MIN_SPAN_MS = 1_000;
/** Minimum interval between two samples, milliseconds. */
const SAMPLE_INTERVAL_MS = 1_000;

interface Sample {
  readonly at: number;
  readonly remaining: number | null;
  /** Entries read up to then. */
  readonly entries: number;
}

/** Measures how fast the feed, a pass or the work of a command gets on, and estimates the time to its end from what remains. */
export function createPaceMeter() {
  let samples: Sample[] = [];
  return {
    /**
     * Called after every page, or while nothing is done. Returns null until the minimum time span has passed.
     * @param at monotonic time, milliseconds
     * @param entries of this page, or other things that were done
     * @param remaining delivery time between the page and the end, in any unit; null if the page does not show it
     */
    measure: (at: number, entries: number, remaining: number | null): ReadingPace | null => {
      const last = samples.at(-1);
      const now: Sample = {
        at,
        remaining: remaining ?? last?.remaining ?? null,
        entries: (last?.entries ?? 0) + entries,
      };
      const before = samples.at(-2);
      if (before !== undefined && at - before.at < SAMPLE_INTERVAL_MS) samples.pop();
      samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), now];
      const [first] = samples;
      return first === undefined ? null : paceBetween(first, now);
    },
  };
}

/** Pure. */
function paceBetween(first: Sample, now: Sample): ReadingPace | null {
  const ms = now.at - first.at;
  if (ms < MIN_SPAN_MS) return null;
  const entriesPerSecond = ((now.entries - first.entries) * 1_000) / ms;
  if (first.remaining === null || now.remaining === null) return { entriesPerSecond, secondsLeft: null };
  const nearerMs = first.remaining - now.remaining;
  const secondsLeft = (now.remaining * ms) / nearerMs / 1_000;
  // Delivery times do not show how much is left in the last second, or after the expected end.
  return { entriesPerSecond, secondsLeft: nearerMs > 0 && secondsLeft >= 1 ? secondsLeft : null };
}
