import type { RecentMinute } from './minute-ring.js';

/** Lengths of the window, of a bar and of a table row, minutes. The shortest window that covers the known minutes is used. */
const SPANS = [
  { length: 20, cell: 1, row: 2 },
  { length: 60, cell: 1, row: 5 },
  { length: 180, cell: 3, row: 15 },
] as const;
const LONGEST = { length: 360, cell: 6, row: 30 } as const;

const MINUTE_MS = 60_000;

export type Window = ReturnType<typeof windowOf>;

/**
 * Returns the period that the charts show.
 * @param now milliseconds since 1970
 */
export function windowOf(known: readonly RecentMinute[], now: number) {
  const present = Math.floor(now / MINUTE_MS);
  const age = present + 1 - Math.min(present, ...known.map(({ minute }) => minute));
  const { length, cell, row } = SPANS.find((span) => age <= span.length) ?? LONGEST;
  // Bars start at whole multiples of their length, so that a reload does not change them.
  const end = Math.ceil((present + 1) / cell) * cell;
  const first = end - length;
  const byMinute = new Map(known.map((minute) => [minute.minute, minute]));
  const minutes = Array.from({ length: present + 1 - first }, (_, at) => byMinute.get(first + at) ?? null);
  const periodsOf = (each: number) =>
    Array.from({ length: length / each }, (_, at) =>
      summed(minutes.slice(at * each, (at + 1) * each), (first + at * each) * MINUTE_MS),
    );
  return {
    /** Every minute from the first one to the present; null if unknown. */
    minutes,
    /** Length of the window, minutes; the last ones may be in the future. */
    length,
    /** Sums for the bars and for the table rows. */
    cells: periodsOf(cell),
    rows: periodsOf(row),
    minutesPerCell: cell,
    minutesPerRow: row,
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
