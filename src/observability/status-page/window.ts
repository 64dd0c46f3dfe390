import type { RecentMinute } from './minute-ring.js';

/** Length of a bar by the age of the process, minutes. */
const SPANS = [
  { age: 60, cell: 1 },
  { age: 180, cell: 3 },
] as const;
const LONGEST = { age: 360, cell: 6 } as const;

const MINUTE_MS = 60_000;

export type Window = ReturnType<typeof windowOf>;

/**
 * Returns the period that the charts show: from the first known minute, at most six hours ago.
 * @param now milliseconds since 1970
 */
export function windowOf(known: readonly RecentMinute[], now: number) {
  const present = Math.floor(now / MINUTE_MS);
  const begun = Math.min(present, ...known.map(({ minute }) => minute));
  const { cell } = SPANS.find((span) => present + 1 - begun <= span.age) ?? LONGEST;
  // Bars start at whole multiples of their length, so that an update does not change them.
  const end = Math.ceil((present + 1) / cell) * cell;
  const first = Math.max(end - LONGEST.age, Math.floor(begun / cell) * cell);
  const length = end - first;
  const byMinute = new Map(known.map((minute) => [minute.minute, minute]));
  /** Every minute of the window up to the present; null if unknown. */
  const minutes = Array.from({ length: present + 1 - first }, (_, at) => byMinute.get(first + at) ?? null);
  const lived = minutes.slice(Math.max(0, begun - first));
  return {
    /** Start and length of the window, minutes. */
    first,
    length,
    /** Number of minutes up to the present. */
    minutes: lived.length,
    minutesPerCell: cell,
    /** The figures of each bar up to the present. */
    cells: Array.from({ length: (end - first) / cell }, (_, at) =>
      summed(minutes.slice(at * cell, (at + 1) * cell), (first + at * cell) * MINUTE_MS),
    ),
    /** Number of minutes without a known lag. */
    minutesWithoutLag: lived.filter((minute) => minute?.lagSeconds == null).length,
    /** Number of minutes in which this process did not lead the feed, or did not run. */
    minutesWithoutLead: lived.filter((minute) => minute?.runs == null).length,
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
