import type pg from 'pg';
import { type ClientOptions, DatabaseClient } from './client.js';
import { connectError } from './connect-errors.js';
import { databaseError, sqlstateOf } from './errors.js';
import { backendOf, findIsDirect } from './prepared-statements.js';

/** The mode of the pooler between this process and the server. `statement`: it refuses transactions. */
export type PoolerMode = 'none' | 'session' | 'transaction' | 'statement';

/** Number of times each connection is checked: a busy pooler may switch to another server connection at any time. */
const CHECKS = 3;

/**
 * Detects a pooler and its mode. In session mode each connection keeps its backend; in other modes the two connections soon share
 * one. Writes nothing.
 * @param deadlineMs deadline of each login and each statement, milliseconds
 */
export async function findPoolerMode(connection: ClientOptions, deadlineMs: number): Promise<PoolerMode> {
  const open = () =>
    new DatabaseClient({ ...connection, connectionTimeoutMillis: deadlineMs, query_timeout: deadlineMs }).on(
      'error',
      () => {},
    );
  const clients = [open(), open()] as const;
  try {
    return await detectMode(clients, connection, deadlineMs);
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

async function detectMode(
  [first, second]: readonly [pg.Client, pg.Client],
  connection: ClientOptions,
  deadlineMs: number,
): Promise<PoolerMode> {
  try {
    await first.connect();
  } catch (error) {
    throw connectError(error, { ...connection, deadlineMs });
  }
  try {
    if (await findIsDirect(first)) return 'none';
    if (!(await supportsTransactions(first))) return 'statement';
  } catch (error) {
    throw databaseError(error);
  }
  try {
    await second.connect();
    const backends = { first: new Set<number>(), second: new Set<number>() };
    for (let check = 0; check < CHECKS; check += 1) {
      backends.first.add(await backendOf(first));
      backends.second.add(await backendOf(second));
    }
    const shared = [...backends.first].some((backend) => backends.second.has(backend));
    return shared || backends.first.size > 1 || backends.second.size > 1 ? 'transaction' : 'session';
  } catch {
    return 'session'; // the first connection keeps the only server connection
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
