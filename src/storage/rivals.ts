import { sqlstateOf } from './errors.js';

/** So long other writers are allowed for once one was met. Milliseconds. */
const REMEMBERED_MS = 3_600_000;
const UNIQUE_VIOLATION = '23505';

/**
 * Other writers of the same scans: feeds that overlap. To allow for them costs each new run a tenth of its time
 * (docs/decisions/0013), so it is done only once one was met, and for an hour, since each encounter that was not allowed
 * for leaves an error in PostgreSQL's log.
 */
export interface Rivals {
  /** Whether a scan that was new when the statement began may be stored when its turn comes. */
  areExpected(): boolean;
  /** One was met. */
  met(): void;
  /** Does a work that goes by `areExpected`, and does it again where it failed because they were not. */
  allowFor<T>(work: () => Promise<T>): Promise<T>;
}

/** @param monotonic milliseconds */
export function createRivals(monotonic: () => number): Rivals {
  let metAt = Number.NEGATIVE_INFINITY;
  const areExpected = () => monotonic() - metAt < REMEMBERED_MS;
  const met = () => {
    metAt = monotonic();
  };
  return {
    areExpected,
    met,
    allowFor: async (work) => {
      const expected = areExpected();
      try {
        return await work();
      } catch (error) {
        if (expected || sqlstateOf(error) !== UNIQUE_VIOLATION) throw error;
        met();
        return work();
      }
    },
  };
}
