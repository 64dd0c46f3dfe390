import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { quoted, type Tables } from '../tables/schema.js';
import { lockMigrations } from './migrate.js';

/** Returns the statements that grant a role the privileges to run the daemon and its commands on tables of another role. */
export function daemonGrantStatements({ schema, reportingSchema }: Tables, role: string): readonly string[] {
  const [tables, reports, name] = [quoted(schema), quoted(reportingSchema), quoted(role)];
  return [
    `GRANT USAGE ON SCHEMA ${tables} TO ${name}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${tables} TO ${name}`,
    `REVOKE INSERT, UPDATE, DELETE ON ${tables}.migrations FROM ${name}`,
    // SELECT, since the last number is compared with the stored ones.
    `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${tables} TO ${name}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${tables} TO ${name}`,
    // The daemon creates and owns the typed views.
    `GRANT USAGE, CREATE ON SCHEMA ${reports} TO ${name}`,
  ];
}

/**
 * Grants the daemon's role its privileges on tables of the connected role. Does nothing if it has them or if there is no such role.
 */
export async function grantDaemon(connection: StoreConnection, role: string): Promise<void> {
  if ((await findMissingRights(connection, role)).length === 0) return;
  const { db, tables } = connection;
  await db.transaction().execute(async (tx) => {
    // Under a lock: two concurrent grants on one object would fail.
    await lockMigrations(tx, tables);
    for (const statement of daemonGrantStatements(tables, role)) await sql.raw(statement).execute(tx);
  });
}

/**
 * Returns the privileges that a role lacks to run the daemon on the existing tables, such as `INSERT on runs`; none if there is no
 * such role.
 * @param role null: the connected role
 */
export async function findMissingRights(
  { db, tables }: StoreConnection,
  role: string | null = null,
): Promise<readonly string[]> {
  const { rows } = await sql<{ missing: string }>`
    WITH daemon AS (SELECT oid FROM pg_roles WHERE rolname = COALESCE(${role}::name, current_user)),
      own AS (SELECT oid FROM pg_namespace WHERE nspname = ${tables.schema}),
      reports AS (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema})
    SELECT wanted || ' on the schema ' || ${tables.schema} AS missing FROM daemon, own, unnest(ARRAY['USAGE']) AS wanted
      WHERE NOT has_schema_privilege(daemon.oid, own.oid, wanted)
    UNION ALL
    SELECT wanted || ' on the schema ' || ${tables.reportingSchema}
      FROM daemon, reports, unnest(ARRAY['USAGE', 'CREATE']) AS wanted
      WHERE NOT has_schema_privilege(daemon.oid, reports.oid, wanted)
    UNION ALL
    SELECT wanted || ' on ' || c.relname
      FROM daemon, own, pg_class AS c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS wanted
      WHERE c.relnamespace = own.oid AND c.relkind IN ('r', 'v') AND (c.relname <> 'migrations' OR wanted = 'SELECT')
        AND NOT has_table_privilege(daemon.oid, c.oid, wanted)
    UNION ALL
    SELECT wanted || ' on ' || c.relname FROM daemon, own, pg_class AS c, unnest(ARRAY['USAGE', 'SELECT']) AS wanted
      WHERE c.relnamespace = own.oid
        AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(daemon.oid, c.oid, wanted) END
    UNION ALL
    SELECT 'EXECUTE on ' || f.proname FROM daemon, own, pg_proc AS f
      WHERE f.pronamespace = own.oid AND NOT has_function_privilege(daemon.oid, f.oid, 'EXECUTE')
    ORDER BY 1`.execute(db);
  return rows.map(({ missing }) => missing);
}
