import { type Kysely, sql } from 'kysely';
import { sqlstateOf } from './errors.js';
import type { StoreConnection } from './store-connection.js';

/** Properties of a server and of the connected role. */
export interface ServerFacts {
  /** Such as `18.4`. */
  readonly version: string;
  readonly major: number;
  readonly role: string;
  readonly database: string;
  readonly encoding: string;
  /** The server is a standby, which replicates another server. */
  readonly standby: boolean;
  /** Transactions of this role are read-only. */
  readonly readOnly: boolean;
  /** The role has the privilege to create schemas. */
  readonly createsSchemas: boolean;
  /** TLS version of the connection, as the server reports it; null: no TLS. */
  readonly tls: string | null;
  readonly now: Date;
}

/** Reads the properties of the server. Writes nothing. */
export async function readServerFacts(db: Kysely<unknown>): Promise<ServerFacts> {
  const { rows } = await sql<ServerFacts>`
    SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
      current_setting('server_version_num')::int / 10000 AS major,
      current_user AS role, current_database() AS database, current_setting('server_encoding') AS encoding,
      pg_is_in_recovery() AS standby, current_setting('transaction_read_only')::boolean AS "readOnly",
      has_database_privilege(current_database(), 'CREATE') AS "createsSchemas",
      (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls,
      clock_timestamp() AS now`.execute(db);
  return rows[0] as ServerFacts;
}

/** Returns why the server accepts no writes, with the remedy; null if it accepts them. */
export function whyReadOnly({ standby, readOnly }: Pick<ServerFacts, 'standby' | 'readOnly'>): string | null {
  if (standby) return 'the server is a standby and accepts no writes; point DATABASE_URL to the primary';
  if (!readOnly) return null;
  return 'transactions are read-only; remove default_transaction_read_only from the role, the database or the server';
}

/** SQLSTATE of a role that lacks the privilege to create temporary tables. */
const NO_RIGHT = '42501';

/**
 * Writes a megabyte to a temporary table and drops it, which fails like the daemon's commits if the disk is full.
 * @throws DatabaseError
 */
export async function tryWrite({ db }: Pick<StoreConnection, 'db'>): Promise<void> {
  const trial = sql`
    CREATE TEMPORARY TABLE scanfeed_trial ON COMMIT DROP AS SELECT gen_random_uuid() FROM generate_series(1, 20000)`;
  await db
    .transaction()
    .execute((transaction) => trial.execute(transaction))
    .catch((error) => {
      if (sqlstateOf(error) !== NO_RIGHT) throw error;
    });
}
