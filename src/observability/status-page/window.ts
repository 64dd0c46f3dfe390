import type { RecentMinute } from './minute-ring.js';

/** Lengths of the window and of a bar, minutes. The shortest window that covers the known minutes is used. */
const SPANS = [
  { length: 20, cell: 1 },
  { length: 60, cell: 1 },
  { length: 180, cell: 3 },
] as const;
const LONGEST = { length: 360, cell: 6 } as const;

const MINUTE_MS = 60_000;

export type Window = ReturnType<typeof windowOf>;

/**
 * Returns the period that the charts show.
 * @param now milliseconds since 1970
 */
export function windowOf(known: readonly RecentMinute[], now: number) {
  const present = Math.floor(now / MINUTE_MS);
  const age = present + 1 - Math.min(present, ...known.map(({ minute }) => minute));
  const { length, cell } = SPANS.find((span) => age <= span.length) ?? LONGEST;
  // Bars start at whole multiples of their length, so that a reload does not change them.
  const end = Math.ceil((present + 1) / cell) * cell;
  const first = end - length;
  const byMinute = new Map(known.map((minute) => [minute.minute, minute]));
  /** Every minute from the first one to the present; null if unknown. The last ones of the window may be in the future. */
  const minutes = Array.from({ length: present + 1 - first }, (_, at) => byMinute.get(first + at) ?? null);
  return {
    /** Length of the window, minutes. */
    length,
    minutesPerCell: cell,
    /** The figures of each bar. */
    cells: Array.from({ length: length / cell }, (_, at) =>
      summed(minutes.slice(at * cell, (at + 1) * cell), (first + at * cell) * MINUTE_MS),
    ),
    /** Number of minutes without a known lag. */
    minutesWithoutLag: minutes.filter((minute) => minute?.lagSeconds == null).length,
    /** Number of minutes in which this process did not lead the feed, or did not run. */
    minutesWithoutLead: minutes.filter((minute) => minute?.runs == null).length,
  };
}

/** @param from the first minute, milliseconds since 1970 */
function summed(minutes: readonly (RecentMinute | null)[], from: number) {
  const known = minutes.filter((minute) => minute !== null);
  const lags = known.flatMap(({ lagSeconds }) => lagSeconds ?? []);
  const runs = known.flatMap((minute) => minute.runs ?? []);
  return {
    from,
    lagSeconds: lags.length === 0 ? null : Math.max(...lags),
    runs: runs.length === 0 ? null : sum(runs),
    failures: sum(known.map(({ failures }) => failures)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
