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

/** Numbers of a slot: minute, lag, runs and failures. NaN: none. */
const WIDTH = 4;

/**
 * Keeps the figures of the latest minutes, 32 bytes for each; as objects they take 110, and a process may follow 1,000 feeds. A
 * minute replaces the one of the same slot, which is a multiple of the length older or newer.
 * @param length number of minutes
 */
export function createMinuteRing(length: number) {
  const numbers = new Float64Array(WIDTH * length).fill(Number.NaN);
  const read = (slot: number): RecentMinute => {
    const [minute = Number.NaN, lagSeconds, runs, failures = 0] = numbers.subarray(WIDTH * slot, WIDTH * (slot + 1));
    return { minute, lagSeconds: orNull(lagSeconds), runs: orNull(runs), failures };
  };
  return {
    get: (minute: number) => {
      const figures = read(minute % length);
      return figures.minute === minute ? figures : undefined;
    },
    set({ minute, lagSeconds, runs, failures }: RecentMinute): void {
      numbers.set([minute, lagSeconds ?? Number.NaN, runs ?? Number.NaN, failures], WIDTH * (minute % length));
    },
    /** Deletes all minutes but those from the first to the last. */
    keep(first: number, last: number): void {
      for (let at = 0; at < numbers.length; at += WIDTH)
        if (!((numbers[at] as number) >= first && (numbers[at] as number) <= last)) numbers[at] = Number.NaN;
    },
    /** Returns the minutes, oldest first. */
    all: (): RecentMinute[] =>
      Array.from({ length }, (_, slot) => read(slot))
        .filter(({ minute }) => !Number.isNaN(minute))
        .sort((one, other) => one.minute - other.minute),
  };
}

function orNull(number = Number.NaN): number | null {
  return Number.isNaN(number) ? null : number;
}
