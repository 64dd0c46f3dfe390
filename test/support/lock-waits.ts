import { type Kysely, sql } from 'kysely';

/**
 * Resolves once this many sessions of the database wait for a lock. Asks over a connection of `db`.
 * @param looks number of times to ask at most, if fewer sessions may wait
 */
export async function untilWaiting(
  db: Kysely<unknown>,
  sessions: number,
  looks = Number.POSITIVE_INFINITY,
): Promise<void> {
  const waiting = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  for (let look = 0; look < looks && (await waiting.execute(db)).rows.length < sessions; look += 1)
    await new Promise(setImmediate);
}
