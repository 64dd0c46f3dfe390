import { sql } from 'kysely';
import type { StoreConnection } from '../connection/store-connection.js';
import { MIGRATION_LOCK } from './migrate.js';
import { quoted, type Tables } from './schema.js';

/** What a role needs that runs the daemon and its commands on tables of another role. */
export function daemonGrantStatements({ schema, reportingSchema }: Tables, role: string): readonly string[] {
  const [tables, reports, name] = [quoted(schema), quoted(reportingSchema), quoted(role)];
  return [
    `GRANT USAGE ON SCHEMA ${tables} TO ${name}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${tables} TO ${name}`,
    `REVOKE INSERT, UPDATE, DELETE ON ${tables}.migrations FROM ${name}`,
    // SELECT, since the number it stands at is compared with those that are stored.
    `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${tables} TO ${name}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${tables} TO ${name}`,
    // Typed views belong to the daemon, who makes them.
    `GRANT USAGE, CREATE ON SCHEMA ${reports} TO ${name}`,
  ];
}

/**
 * Gives the daemon's role its rights on tables that belong to the role that is connected. Does nothing where it has them,
 * and where there is no such role.
 */
export async function grantDaemon(connection: StoreConnection, role: string): Promise<void> {
  if ((await findMissingRights(connection, role)).length === 0) return;
  const { db, tables } = connection;
  await db.transaction().execute(async (tx) => {
    // One starter at a time: two that grant on one object at once would fail.
    await sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(tx);
    for (const statement of daemonGrantStatements(tables, role)) await sql.raw(statement).execute(tx);
  });
}

/**
 * What a role lacks to run the daemon on the tables that are there, such as `INSERT on runs`; nothing where there is no such
 * role.
 * @param role the one that is connected unless another is named
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
