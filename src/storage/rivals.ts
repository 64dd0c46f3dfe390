import { OVERTAKEN, sqlstateOf } from './errors.js';

/** So long other writers are allowed for once one was met. Milliseconds. */
const REMEMBERED_MS = 3_600_000;
/** unique_violation */
const STORED_MEANWHILE = '23505';

/**
 * Other writers of the same scans: feeds that list the same runs, or what is read beside a feed. To allow for them makes
 * each commit dearer (docs/decisions/0013), so it is done only once one was met, and for an hour, since each encounter
 * that was not allowed for leaves an error in PostgreSQL's log.
 */
export interface Rivals {
  /** One was met: it is allowed for from now on, or for longer. */
  met(): void;
  /**
   * Writes. Where another writer changed a scan meanwhile and this was not expected, nothing has happened, and it is
   * written again. A unique index of somebody else's is met like a rival, and its error is thrown the second time.
   */
  allowFor<T>(write: (expected: boolean) => Promise<T>): Promise<T>;
}

/** @param monotonic milliseconds */
export function createRivals(monotonic: () => number): Rivals {
  let metAt = Number.NEGATIVE_INFINITY;
  const met = () => {
    metAt = monotonic();
  };
  return {
    met,
    allowFor: async (write) => {
      if (monotonic() - metAt < REMEMBERED_MS) return write(true);
      try {
        return await write(false);
      } catch (error) {
        if (!isEncounter(error)) throw error;
        met();
        return write(true);
      }
    },
  };
}

function isEncounter(error: unknown): boolean {
  const sqlstate = sqlstateOf(error);
  return sqlstate === STORED_MEANWHILE || sqlstate === OVERTAKEN;
}
