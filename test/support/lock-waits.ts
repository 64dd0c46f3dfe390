import { type Kysely, sql } from 'kysely';

/** Resolves once this many sessions of the database wait for a lock. Asks over a connection of `db`. */
export async function untilWaiting(db: Kysely<unknown>, sessions: number): Promise<void> {
  const waiting = sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
  while ((await waiting.execute(db)).rows.length < sessions) await new Promise(setImmediate);
}
