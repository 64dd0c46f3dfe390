import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { type ClientOptions, DatabaseClient } from './client.js';
import { connectError, type Destination, poolExhausted } from './connect-errors.js';
import { DatabaseError, databaseError, endsConnection, isReadOnly } from './errors.js';
import { sendLongParameters } from './long-parameter.js';
import { createPreparedStatements, findIsDirect } from './prepared-statements.js';

export interface DatabaseOptions {
  readonly connection: ClientOptions;
  /** Maximum number of connections. */
  readonly maxConnections: number;
  /** The setting with this maximum, if there is one, for the error of an exhausted pool. */
  readonly sizeSetting?: string;
  /**
   * Deadline of a statement, milliseconds. Enforced by the client, since server-side limits do not pass PgBouncer. After the
   * deadline the connection is destroyed and the outcome is unknown.
   */
  readonly statementDeadlineMs?: number;
  readonly connectDeadlineMs?: number;
  /** Deadline of waiting for a free connection, milliseconds: at least that of connecting, which is the default. */
  readonly queueDeadlineMs?: number;
  /**
   * When it aborts, connections that are still logging in are closed: no statement runs on them. Later connections are allowed,
   * for the last statements of a shutdown.
   */
  readonly signal?: AbortSignal;
}

/** Default deadline of a statement, milliseconds. */
export const STATEMENT_DEADLINE_MS = 120_000;
/** Maximum number of connections of a process for its leases, in addition to those for everything else. */
export const LEASE_CONNECTIONS = 3;
const CONNECT_DEADLINE_MS = 10_000;
/** Time after which an idle connection is closed, milliseconds. Longer than the pause between two polls: a login is expensive. */
const IDLE_MS = 60_000;
/** Maximum age of a connection, seconds: one to a former primary that still answers reads must not be used forever. */
const LIFETIME_S = 600;

export type Database = ReturnType<typeof openDatabase>;

/** Opens a pool of connections, with Kysely on top of it. */
export function openDatabase(options: DatabaseOptions) {
  const connectDeadlineMs = options.connectDeadlineMs ?? CONNECT_DEADLINE_MS;
  const queueDeadlineMs = options.queueDeadlineMs ?? connectDeadlineMs;
  const statementDeadlineMs = options.statementDeadlineMs ?? STATEMENT_DEADLINE_MS;
  const { Client, loggedIn, cutHandshakes } = handshakes(connectDeadlineMs);
  /** The clients without a pooler in between. */
  const direct = new WeakSet<pg.ClientBase>();
  const pool = new pg.Pool({
    ...options.connection,
    Client,
    max: options.maxConnections,
    connectionTimeoutMillis: queueDeadlineMs,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_S,
    keepAlive: true, // off by default: a dead connection would hang forever
    keepAliveInitialDelayMillis: 10_000,
    onConnect: async (client) => {
      const isDirect = await withDeadline(findIsDirect(client), Math.min(statementDeadlineMs, STATEMENT_DEADLINE_MS));
      if (isDirect) direct.add(client);
    },
  });
  const clients = new Set<pg.PoolClient>();
  // The statement on a lost connection reports the error; without these handlers the error would end the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => {
    loggedIn(client);
    clients.add(client);
    client.on('error', () => {});
  });
  pool.on('remove', (client) => clients.delete(client as pg.PoolClient));
  options.signal?.addEventListener('abort', cutHandshakes, { once: true });
  let closed: Promise<void> | undefined;
  const destination = { ...options.connection, deadlineMs: connectDeadlineMs };
  const exhausted = () => poolExhausted(destination, queueDeadlineMs, options.sizeSetting);
  const { readAgain = async () => ({}) } = options.connection;
  const prepare = createPreparedStatements((client) => direct.has(client));
  const guarded = guardedPool(pool, clients, { destination, exhausted, prepare, statementDeadlineMs, readAgain });
  return {
    sql: new Kysely<unknown>({ dialect: new PostgresDialect({ pool: guarded }) }),
    /** Returns the number of connections in use, of idle ones, and of callers waiting for one. */
    usage: () => ({
      active: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    /** Closes idle connections and destroys busy ones. May be called repeatedly. */
    close: async () => {
      options.signal?.removeEventListener('abort', cutHandshakes);
      closed ??= closePool(pool, clients, cutHandshakes);
      await closed;
    },
  };
}

/**
 * Creates the client class of a pool, which sends long parameters in pieces, and a function that closes the connections that are
 * still logging in: the pool itself does not know them.
 */
function handshakes(deadlineMs: number) {
  const open = new Set<pg.Client>();
  class Client extends DatabaseClient {
    constructor(config?: ClientOptions) {
      // Not a copy: the pool makes the password a hidden property.
      super(Object.assign(Object.create(config ?? null), { connectionTimeoutMillis: deadlineMs }));
      open.add(this);
      sendLongParameters(this.connection);
      this.connection.once('end', () => open.delete(this));
    }
  }
  return {
    Client,
    loggedIn: (client: pg.Client) => void open.delete(client),
    cutHandshakes: () => {
      for (const client of open) client.connection.stream.destroy();
    },
  };
}

/** Closes the pool. `pool.end()` waits forever for busy clients and for silent servers, so these connections are closed first. */
async function closePool(pool: pg.Pool, clients: ReadonlySet<pg.PoolClient>, cutHandshakes: () => void): Promise<void> {
  const busy = pool.totalCount - pool.idleCount > 0;
  const ended = pool.end();
  cutHandshakes();
  if (busy) for (const client of clients) void client.end().catch(() => {});
  await ended;
}

interface GuardOptions {
  readonly destination: Destination;
  /** Creates the error of a caller that got no connection because all are in use. */
  readonly exhausted: () => DatabaseError;
  /** Returns the query to send for a statement. */
  readonly prepare: ReturnType<typeof createPreparedStatements>;
  readonly statementDeadlineMs: number;
  readonly readAgain: NonNullable<ClientOptions['readAgain']>;
}

/**
 * Wraps the pool for Kysely: every statement has a deadline, and a connection on which something failed without a SQLSTATE is
 * destroyed. (Kysely alone would return it to the pool, perhaps inside a transaction.) If a server is read-only, none of the
 * current connections is used again, since others may lead to the same server.
 * @param clients the clients that are logged in
 */
function guardedPool(
  pool: pg.Pool,
  clients: ReadonlySet<pg.PoolClient>,
  { destination, exhausted, prepare, statementDeadlineMs, readAgain }: GuardOptions,
): PostgresPool {
  const outdated = new WeakSet<pg.PoolClient>();
  const guarded = (client: pg.PoolClient): PostgresPoolClient => {
    let brokenBy: unknown = null;
    const query = async (sql: string, parameters: readonly unknown[]) => {
      // A rollback would wait for another deadline, behind the unanswered statement.
      if (brokenBy !== null) throw brokenBy;
      try {
        return await withDeadline(client.query(prepare(client, sql, parameters)), statementDeadlineMs);
      } catch (error) {
        const failure = databaseError(error);
        if (endsConnection(error)) brokenBy = failure;
        if (isReadOnly(error)) for (const each of clients) outdated.add(each);
        throw failure;
      }
    };
    return {
      query: query as unknown as PostgresPoolClient['query'],
      release: () => client.release(brokenBy !== null || outdated.has(client)),
    };
  };
  return {
    connect: async () => {
      try {
        for (;;) {
          if (pool.idleCount === 0) Object.assign(pool.options, await readAgain());
          const client = await pool.connect();
          if (outdated.has(client)) client.release(true);
          else return guarded(client);
        }
      } catch (error) {
        // If the maximum number of clients is logged in, this caller was waiting for one of them.
        const isExhausted = !pool.ending && clients.size >= pool.options.max;
        throw isExhausted ? exhausted() : connectError(error, destination);
      }
    },
    end: () => pool.end(),
  };
}

/** Rejects after the deadline; the caller ends the statement by destroying its connection. */
async function withDeadline<T>(running: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new DatabaseError(null, 'deadline', 'retry', `PostgreSQL did not respond within ${deadlineMs / 1000} s`),
        ),
      deadlineMs,
    );
  });
  try {
    return await Promise.race([running, late]);
  } finally {
    clearTimeout(timer);
    running.catch(() => {}); // settles once the connection is gone
  }
}
