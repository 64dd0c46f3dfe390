import type pg from 'pg';
import { type ClientOptions, DatabaseClient } from './client.js';
import { connectError } from './connect-errors.js';
import { databaseError, sqlstateOf } from './errors.js';
import { findIsDirect } from './prepared-statements.js';

/** The pooler between this process and the server. `statement`: it refuses transactions. `transaction`: it accepts them. */
export type PoolerMode = 'none' | 'statement' | 'transaction';

/**
 * Detects a pooler, and whether it accepts transactions. Writes nothing.
 * @param deadlineMs deadline of the login and of each statement, milliseconds
 */
export async function findPoolerMode(connection: ClientOptions, deadlineMs: number): Promise<PoolerMode> {
  const client = new DatabaseClient({
    ...connection,
    connectionTimeoutMillis: deadlineMs,
    query_timeout: deadlineMs,
  });
  client.on('error', () => {}); // the statement reports it
  try {
    await client.connect();
  } catch (error) {
    throw connectError(error, { ...connection, deadlineMs });
  }
  try {
    if (await findIsDirect(client)) return 'none';
    return (await supportsTransactions(client)) ? 'transaction' : 'statement';
  } catch (error) {
    throw databaseError(error);
  } finally {
    await client.end().catch(() => {});
  }
}

async function supportsTransactions(client: pg.Client): Promise<boolean> {
  try {
    await client.query('BEGIN READ ONLY');
    await client.query('ROLLBACK');
    return true;
  } catch (error) {
    if (sqlstateOf(error) === null) throw error;
    return false;
  }
}
