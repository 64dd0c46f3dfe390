import { HISTORY_MINUTES, type RecentMinute } from './recent-history.js';

/** Maximum number of bars. */
const MAX_BARS = 60;

const MINUTE_MS = 60_000;

export type Window = ReturnType<typeof windowOf>;

/**
 * Returns the period that the charts show: from the first known minute, at most six hours ago.
 * @param now milliseconds since 1970
 */
export function windowOf(known: readonly RecentMinute[], now: number) {
  const present = Math.floor(now / MINUTE_MS);
  const oldest = Math.min(present, ...known.map(({ minute }) => minute));
  const cell = Math.min(HISTORY_MINUTES / MAX_BARS, Math.ceil((present + 1 - oldest) / MAX_BARS));
  // Bars start at whole multiples of their length, so that an update does not change them.
  const end = Math.ceil((present + 1) / cell) * cell;
  const first = Math.max(end - HISTORY_MINUTES, Math.floor(oldest / cell) * cell);
  const begun = Math.max(first, oldest);
  const shown = known.filter(({ minute }) => minute >= begun && minute <= present);
  const minutes = present + 1 - begun;
  return {
    /** Start and length of the window, minutes. */
    first,
    length: end - first,
    /** Number of minutes up to the present. */
    minutes,
    minutesPerCell: cell,
    /** The figures of each bar. */
    cells: Array.from({ length: (end - first) / cell }, (_, at) => {
      const from = first + at * cell;
      const inCell = shown.filter(({ minute }) => minute >= from && minute < from + cell);
      return { from: from * MINUTE_MS, ...summed(inCell) };
    }),
    /** Number of minutes without a known lag. */
    minutesWithoutLag: minutes - shown.filter(({ lagSeconds }) => lagSeconds !== null).length,
    /** Number of minutes in which this process did not lead the feed, or did not run. */
    minutesWithoutLead: minutes - shown.filter(({ runs }) => runs !== null).length,
  };
}

function summed(minutes: readonly RecentMinute[]) {
  const lags = minutes.flatMap(({ lagSeconds }) => lagSeconds ?? []);
  const runs = minutes.flatMap((minute) => minute.runs ?? []);
  return {
    lagSeconds: lags.length === 0 ? null : Math.max(...lags),
    runs: runs.length === 0 ? null : sum(runs),
    failures: sum(minutes.map(({ failures }) => failures)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
