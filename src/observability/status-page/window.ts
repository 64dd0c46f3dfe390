import type { RecentMinute } from '../recent-history.js';

/** Bars of a chart; the lag is drawn minute by minute. */
const CELLS = 60;
/** Rows of the table. */
const ROWS = 12;
/** What is shown, in hours: the least of these that has all that is known. */
const SPANS = [1, 3, 6] as const;

const MINUTE_MS = 60_000;

/** What a stretch of minutes came to. */
export interface Stretch {
  /** Its first minute, milliseconds since 1970. */
  readonly from: number;
  readonly lagSeconds: number | null;
  readonly runs: number | null;
  readonly failures: number;
}

/** The stretch of time that the charts show. */
export interface Window {
  readonly hours: number;
  /** From the first on to the present one, without gaps; null: nothing is known of it. */
  readonly minutes: readonly (RecentMinute | null)[];
  /** How many there are room for: some are still to come. */
  readonly length: number;
  /** The same in 60 stretches, for bars, and in 12, for a table. They begin at whole minutes of the clock. */
  readonly cells: readonly Stretch[];
  readonly rows: readonly Stretch[];
  readonly minutesPerCell: number;
  /** Those without a known lag, and those in which this process did not lead, as far as it knows. */
  readonly minutesWithoutLag: number;
  readonly minutesWithoutLead: number;
}

/** @param now milliseconds since 1970 */
export function windowOf(known: readonly RecentMinute[], now: number): Window {
  const present = Math.floor(now / MINUTE_MS);
  const age = present + 1 - Math.min(present, ...known.map(({ minute }) => minute));
  const hours = SPANS.find((span) => age <= span * 60) ?? 6;
  const minutesPerCell = hours;
  // At whole multiples, so that a bar stays what it is from one look to the next.
  const end = Math.ceil((present + 1) / minutesPerCell) * minutesPerCell;
  const first = end - CELLS * minutesPerCell;
  const byMinute = new Map(known.map((minute) => [minute.minute, minute]));
  const minutes = Array.from({ length: present + 1 - first }, (_, at) => byMinute.get(first + at) ?? null);
  const length = end - first;
  const stretches = (count: number) =>
    Array.from({ length: count }, (_, at) => {
      const each = length / count;
      return summed(minutes.slice(at * each, (at + 1) * each), (first + at * each) * MINUTE_MS);
    });
  return {
    hours,
    minutes,
    length,
    cells: stretches(CELLS),
    rows: stretches(ROWS),
    minutesPerCell,
    minutesWithoutLag: minutes.filter((minute) => minute?.lagSeconds == null).length,
    minutesWithoutLead: minutes.filter((minute) => minute?.runs == null).length,
  };
}

function summed(minutes: readonly (RecentMinute | null)[], from: number): Stretch {
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
