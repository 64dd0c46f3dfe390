import { type Kysely, sql } from 'kysely';
import type { Tables } from './schema.js';

/** What a server and a role on it are. Nothing is written to find out. */
export interface ServerFacts {
  /** Such as `18.4`. */
  readonly version: string;
  readonly major: number;
  readonly role: string;
  readonly database: string;
  readonly encoding: string;
  /** A standby: it only follows another server. */
  readonly standby: boolean;
  /** Transactions of this role may not write. */
  readonly readOnly: boolean;
  /** The role may create schemas. */
  readonly createsSchemas: boolean;
  /** How the connection is encrypted, by the server; null: not at all. */
  readonly tls: string | null;
  readonly now: Date;
}

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

/** What the role that is connected lacks to run the daemon on the tables that are there, such as `INSERT on runs`. */
export async function findMissingRights(db: Kysely<unknown>, tables: Tables): Promise<readonly string[]> {
  const { rows } = await sql<{ missing: string }>`
    WITH own AS (SELECT oid FROM pg_namespace WHERE nspname = ${tables.schema}),
      reports AS (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})
    SELECT wanted || ' on the schema ' || ${tables.schema} AS missing FROM own, unnest(ARRAY['USAGE']) AS wanted
      WHERE NOT has_schema_privilege(own.oid, wanted)
    UNION ALL
    SELECT wanted || ' on the schema ' || ${tables.reportingSchema} FROM reports, unnest(ARRAY['USAGE', 'CREATE']) AS wanted
      WHERE NOT has_schema_privilege(reports.oid, wanted)
    UNION ALL
    SELECT wanted || ' on ' || c.relname FROM own, pg_class AS c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS wanted
      WHERE c.relnamespace = own.oid AND c.relkind = 'r' AND (c.relname <> 'migrations' OR wanted = 'SELECT')
        AND NOT has_table_privilege(c.oid, wanted)
    UNION ALL
    SELECT wanted || ' on ' || c.relname FROM own, pg_class AS c, unnest(ARRAY['USAGE', 'SELECT']) AS wanted
      WHERE c.relnamespace = own.oid AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, wanted) END
    UNION ALL
    SELECT 'EXECUTE on ' || f.proname FROM own JOIN pg_proc AS f ON f.pronamespace = own.oid
      WHERE NOT has_function_privilege(f.oid, 'EXECUTE')
    ORDER BY 1`.execute(db);
  return rows.map(({ missing }) => missing);
}
