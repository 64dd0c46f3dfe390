import type pg from 'pg';
import { DatabaseClient, type DatabaseConnection } from './client.js';
import { connectError } from './connect-errors.js';
import { databaseError, sqlstateOf } from './errors.js';

/** What stands between this process and the server. `statement`: transactions are refused. */
export type PoolerMode = 'none' | 'session' | 'transaction' | 'statement';

/** Takes turns on two connections so often: a busy pooler may hand out another server connection now and then. */
const TURNS = 3;

/**
 * A pooler makes up the process number that it tells at the login, so that it is not the backend's. In session mode each
 * connection keeps its backend; otherwise one is soon seen on the other connection. Nothing is written.
 * @param deadlineMs of each login and statement
 */
export async function findPoolerMode(connection: DatabaseConnection, deadlineMs: number): Promise<PoolerMode> {
  const open = () =>
    new DatabaseClient({ ...connection, connectionTimeoutMillis: deadlineMs, query_timeout: deadlineMs }).on(
      'error',
      () => {},
    );
  const clients = [open(), open()] as const;
  try {
    return await look(clients, connection, deadlineMs);
  } finally {
    await Promise.all(clients.map((client) => client.end().catch(() => {})));
  }
}

async function look(
  [first, second]: readonly [pg.Client, pg.Client],
  connection: DatabaseConnection,
  deadlineMs: number,
): Promise<PoolerMode> {
  try {
    await first.connect();
  } catch (error) {
    throw connectError(error, { ...connection, deadlineMs });
  }
  try {
    const told = (first as unknown as { readonly processID: number }).processID;
    if ((await backendOf(first)) === told) return 'none';
    if (!(await takesTransactions(first))) return 'statement';
  } catch (error) {
    throw databaseError(error);
  }
  try {
    await second.connect();
    const backends = { first: new Set<number>(), second: new Set<number>() };
    for (let turn = 0; turn < TURNS; turn += 1) {
      backends.first.add(await backendOf(first));
      backends.second.add(await backendOf(second));
    }
    const shared = [...backends.first].some((backend) => backends.second.has(backend));
    return shared || backends.first.size > 1 || backends.second.size > 1 ? 'transaction' : 'session';
  } catch {
    return 'session'; // the first connection keeps the only server connection there is
  }
}

async function backendOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

async function takesTransactions(client: pg.Client): Promise<boolean> {
  try {
    await client.query('BEGIN READ ONLY');
    await client.query('ROLLBACK');
    return true;
  } catch (error) {
    if (sqlstateOf(error) === null) throw error;
    return false;
  }
}
