import { type Kysely, sql } from 'kysely';
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
export async function grantDaemon(db: Kysely<unknown>, tables: Tables, role: string): Promise<void> {
  if (await hasItsRights(db, tables, role)) return;
  await db.transaction().execute(async (tx) => {
    // One starter at a time: two that grant on one object at once would fail.
    await sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(tx);
    for (const statement of daemonGrantStatements(tables, role)) await sql.raw(statement).execute(tx);
  });
}

async function hasItsRights(db: Kysely<unknown>, tables: Tables, role: string): Promise<boolean> {
  const { rows } = await sql<{ complete: boolean }>`
    SELECT has_schema_privilege(daemon.oid, tables.oid, 'USAGE')
      AND has_schema_privilege(daemon.oid, reports.oid, 'CREATE') AND has_schema_privilege(daemon.oid, reports.oid, 'USAGE')
      AND NOT EXISTS (
        SELECT FROM pg_class AS c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS wanted
        WHERE c.relnamespace = tables.oid AND c.relkind = 'r'
          AND NOT has_table_privilege(daemon.oid, c.oid, wanted) AND (c.relname <> 'migrations' OR wanted = 'SELECT'))
      AND NOT EXISTS (
        SELECT FROM pg_class AS c CROSS JOIN unnest(ARRAY['USAGE', 'SELECT']) AS wanted
        WHERE c.relnamespace = tables.oid
          AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(daemon.oid, c.oid, wanted) END)
      AND NOT EXISTS (
        SELECT FROM pg_proc AS f
        WHERE f.pronamespace = tables.oid AND NOT has_function_privilege(daemon.oid, f.oid, 'EXECUTE'))
      AS complete
    FROM pg_roles AS daemon, pg_namespace AS tables, pg_namespace AS reports
    WHERE daemon.rolname = ${role} AND tables.nspname = ${tables.schema} AND reports.nspname = ${tables.reportingSchema}`.execute(
    db,
  );
  return rows[0]?.complete ?? true;
}
