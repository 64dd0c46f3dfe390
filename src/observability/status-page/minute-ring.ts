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

/** Marks of a free slot and of a value that is null. */
const FREE = -1;
const NO_RUNS = -1;

/**
 * Keeps the figures of the latest minutes, 20 bytes for each; as objects they take 110, and a process may follow 1,000 feeds. A
 * minute replaces the one of the same slot, which is a multiple of the length older or newer.
 * @param length number of minutes
 */
export function createMinuteRing(length: number) {
  const minutes = new Int32Array(length).fill(FREE);
  const lags = new Float64Array(length);
  const runs = new Int32Array(length);
  const failures = new Uint32Array(length);

  const read = (slot: number): RecentMinute => {
    const [lagSeconds = Number.NaN, written = NO_RUNS] = [lags[slot], runs[slot]];
    return {
      minute: minutes[slot] ?? FREE,
      lagSeconds: Number.isNaN(lagSeconds) ? null : lagSeconds,
      runs: written === NO_RUNS ? null : written,
      failures: failures[slot] ?? 0,
    };
  };
  return {
    get: (minute: number) => (minutes[minute % length] === minute ? read(minute % length) : undefined),
    set(figures: RecentMinute): void {
      const slot = figures.minute % length;
      minutes[slot] = figures.minute;
      lags[slot] = figures.lagSeconds ?? Number.NaN;
      runs[slot] = figures.runs ?? NO_RUNS;
      failures[slot] = figures.failures;
    },
    /** Deletes all minutes but those from the first to the last. */
    keep(first: number, last: number): void {
      for (const [slot, minute] of minutes.entries()) if (minute < first || minute > last) minutes[slot] = FREE;
    },
    /** Returns the minutes, oldest first. */
    all: (): RecentMinute[] =>
      Array.from(minutes.keys(), read)
        .filter(({ minute }) => minute !== FREE)
        .sort((one, other) => one.minute - other.minute),
  };
}
