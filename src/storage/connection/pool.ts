import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely';
import pg from 'pg';
import { DatabaseClient, type DatabaseConnection } from './client.js';
import { connectError, type Destination, poolUsedUp } from './connect-errors.js';
import { DatabaseError, databaseError, endsConnection, isReadOnly } from './errors.js';
import { sendLongParameters } from './long-parameter.js';

export interface DatabaseOptions {
  readonly connection: DatabaseConnection;
  /** Connections at most. */
  readonly maxConnections: number;
  /**
   * One statement, whole, milliseconds. Kept on this side: server-side limits do not pass PgBouncer. When it is over the
   * connection is destroyed and the outcome is unknown.
   */
  readonly statementDeadlineMs?: number;
  readonly connectDeadlineMs?: number;
  /**
   * When it aborts, connections that are not logged in yet are cut: no statement waits on them. Later ones are not, since
   * there may be something to put in order at the end.
   */
  readonly signal?: AbortSignal;
}

/** One statement, whole, milliseconds, where nothing else is said. */
export const STATEMENT_DEADLINE_MS = 120_000;
const CONNECT_DEADLINE_MS = 10_000;
/** Longer than the pause between two statements at rest: a login costs more than all of them. */
const IDLE_MS = 60_000;
/** Maximum age of a connection, seconds: one to a former primary that still answers reads must not be used without end. */
const LIFETIME_S = 600;

export type Database = ReturnType<typeof openDatabase>;

/** A pool, and kysely over it. */
export function openDatabase(options: DatabaseOptions) {
  const connectDeadlineMs = options.connectDeadlineMs ?? CONNECT_DEADLINE_MS;
  const { Client, loggedIn, cutHandshakes } = handshakes();
  const pool = new pg.Pool({
    ...options.connection,
    Client,
    max: options.maxConnections,
    connectionTimeoutMillis: connectDeadlineMs,
    idleTimeoutMillis: IDLE_MS,
    maxLifetimeSeconds: LIFETIME_S,
    keepAlive: true, // off by default: a blackholed connection would hang for ever
    keepAliveInitialDelayMillis: 10_000,
  });
  const clients = new Set<pg.PoolClient>();
  // A dying connection is reported by the statement that runs on it; without these handlers it would end the process.
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
  const guarded = guardedPool(pool, clients, destination, options.statementDeadlineMs ?? STATEMENT_DEADLINE_MS);
  return {
    sql: new Kysely<unknown>({ dialect: new PostgresDialect({ pool: guarded }) }),
    /** Connections: in use, idle, and callers waiting for one. */
    usage: () => ({
      active: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
    /** Closes idle connections and destroys busy ones. May be called again. */
    close: async () => {
      options.signal?.removeEventListener('abort', cutHandshakes);
      closed ??= closePool(pool, clients, cutHandshakes);
      await closed;
    },
  };
}

/** The pool's clients, which send long parameters as they are, and a way to cut those that are not logged in yet: the pool itself knows none. */
function handshakes() {
  const open = new Set<pg.Client>();
  class Client extends DatabaseClient {
    constructor(config?: DatabaseConnection) {
      super(config);
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

/** `pool.end()` waits for ever for a client that is out, and for one whose server is silent, so both are cut. */
async function closePool(pool: pg.Pool, clients: ReadonlySet<pg.PoolClient>, cutHandshakes: () => void): Promise<void> {
  const busy = pool.totalCount - pool.idleCount > 0;
  const ended = pool.end();
  cutHandshakes();
  if (busy) for (const client of clients) void client.end().catch(() => {});
  await ended;
}

/**
 * Between kysely and the pool: every statement has a deadline, and a connection on which anything failed without a
 * SQLSTATE is destroyed, never used again. (Kysely alone would give it back to the pool, perhaps inside a transaction.)
 * When a server turns out to be read-only, none of the present connections is used again: others may lead to it as well.
 * @param clients those that are logged in
 */
function guardedPool(
  pool: pg.Pool,
  clients: ReadonlySet<pg.PoolClient>,
  destination: Destination,
  statementDeadlineMs: number,
): PostgresPool {
  const outdated = new WeakSet<pg.PoolClient>();
  const guarded = (client: pg.PoolClient): PostgresPoolClient => {
    let brokenBy: unknown = null;
    const query = async (sql: string, parameters: readonly unknown[]) => {
      // A rollback would wait behind the statement that was not answered, for another deadline.
      if (brokenBy !== null) throw brokenBy;
      try {
        return await withDeadline(client.query(sql, [...parameters]), statementDeadlineMs);
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
          const client = await pool.connect();
          if (!outdated.has(client)) return guarded(client);
          client.release(true);
        }
      } catch (error) {
        // Where as many are logged in as there may be, whoever got none waited for one of these.
        const isUsedUp = !pool.ending && clients.size >= pool.options.max;
        throw isUsedUp ? poolUsedUp(destination) : connectError(error, destination);
      }
    },
    end: () => pool.end(),
  };
}

/** Rejects when the deadline is over; the statement itself is ended by destroying its connection. */
async function withDeadline<T>(running: Promise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(new DatabaseError(null, 'deadline', 'retry', `PostgreSQL gave no answer within ${deadlineMs / 1000} s`)),
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
