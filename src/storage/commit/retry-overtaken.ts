import { DatabaseError, OVERTAKEN, sqlstateOf } from '../connection/errors.js';

/** Maximum number of tries of a statement that is overtaken by other writers. */
const MAX_TRIES = 5;

/**
 * Retries an overtaken write on a fresh snapshot. Entries are judged by the snapshot of their statement. If another writer has
 * changed one of their rows since, and the entry can no longer be written as judged, the whole statement fails. No pause is
 * needed: the other writer has committed by then.
 */
export async function retryOvertaken<T>(schema: string, write: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    try {
      return await write();
    } catch (error) {
      if (sqlstateOf(error) !== OVERTAKEN) throw error;
    }
  }
  const message = `a run of this page could not be written (SQLSTATE ${OVERTAKEN}). Either another writer changed it during each of ${MAX_TRIES} tries, or a trigger or row security policy on ${schema}.runs skips it: remove such a trigger or policy`;
  throw new DatabaseError(OVERTAKEN, 'serialization', 'retry', message);
}
