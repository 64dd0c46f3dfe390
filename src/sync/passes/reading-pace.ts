import type { ReadingPace } from '../ports/index.js';

/** The pace is measured over this much of the past, milliseconds. */
const WINDOW_MS = 5 * 60_000;
/** Minimum time to measure a pace, milliseconds. */
const LEAST_MS = 1_000;
/** Minimum time between two samples, milliseconds. */
const SAMPLE_MS = 1_000;

interface Sample {
  readonly at: number;
  readonly remainingMs: number | null;
  /** Entries read up to then. */
  readonly entries: number;
}

/** Measures how fast the feed or a pass is read, by its entries and by the delivery time that is left. */
export interface PaceMeter {
  /**
   * Called after every page. Returns null while too little was read.
   * @param at monotonic time, milliseconds
   * @param entries of this page
   * @param remainingMs delivery time between the page and the end; null if the page does not show it
   */
  passed(at: number, entries: number, remainingMs: number | null): ReadingPace | null;
}

export function createPaceMeter(): PaceMeter {
  let samples: Sample[] = [];
  return {
    passed: (at, entries, remainingMs) => {
      const last = samples.at(-1);
      const now: Sample = {
        at,
        remainingMs: remainingMs ?? last?.remainingMs ?? null,
        entries: (last?.entries ?? 0) + entries,
      };
      const before = samples.at(-2);
      if (before !== undefined && at - before.at < SAMPLE_MS) samples.pop();
      samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), now];
      const [first] = samples;
      return first === undefined ? null : paceBetween(first, now);
    },
  };
}

/** Pure. */
function paceBetween(first: Sample, now: Sample): ReadingPace | null {
  const ms = now.at - first.at;
  if (ms < LEAST_MS) return null;
  const entriesPerSecond = ((now.entries - first.entries) * 1_000) / ms;
  if (first.remainingMs === null || now.remainingMs === null) return { entriesPerSecond, secondsLeft: null };
  const nearerMs = first.remainingMs - now.remainingMs;
  const secondsLeft = nearerMs > 0 ? (Math.max(0, now.remainingMs) * ms) / nearerMs / 1_000 : null;
  return { entriesPerSecond, secondsLeft };
}
