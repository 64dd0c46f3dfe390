import type { RecentMinute } from './recent-history.js';

/** What is shown, in minutes: the shortest of these that has all that is known; and what a bar and a row of it have. */
const SPANS = [
  { length: 20, cell: 1, row: 2 },
  { length: 60, cell: 1, row: 5 },
  { length: 180, cell: 3, row: 15 },
] as const;
const LONGEST = { length: 360, cell: 6, row: 30 } as const;

const MINUTE_MS = 60_000;

export type Window = ReturnType<typeof windowOf>;

/**
 * The stretch of time that the charts show.
 * @param now milliseconds since 1970
 */
export function windowOf(known: readonly RecentMinute[], now: number) {
  const present = Math.floor(now / MINUTE_MS);
  const age = present + 1 - Math.min(present, ...known.map(({ minute }) => minute));
  const { length, cell, row } = SPANS.find((span) => age <= span.length) ?? LONGEST;
  // At whole multiples, so that a bar stays what it is from one look to the next.
  const end = Math.ceil((present + 1) / cell) * cell;
  const first = end - length;
  const byMinute = new Map(known.map((minute) => [minute.minute, minute]));
  const minutes = Array.from({ length: present + 1 - first }, (_, at) => byMinute.get(first + at) ?? null);
  const stretchesOf = (each: number) =>
    Array.from({ length: length / each }, (_, at) =>
      summed(minutes.slice(at * each, (at + 1) * each), (first + at * each) * MINUTE_MS),
    );
  return {
    /** From the first on to the present one, without gaps; null: nothing is known of it. */
    minutes,
    /** How many there is room for: some may be still to come. */
    length,
    /** The same in stretches, for bars and for a table. */
    cells: stretchesOf(cell),
    rows: stretchesOf(row),
    minutesPerCell: cell,
    minutesPerRow: row,
    /** Those without a known lag, and those in which this process did not lead, as far as it knows. */
    minutesWithoutLag: minutes.filter((minute) => minute?.lagSeconds == null).length,
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
