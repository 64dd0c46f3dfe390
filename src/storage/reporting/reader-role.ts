import { sql } from 'kysely';
import { sqlstateOf } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { lockMigrations } from '../schema/migrate.js';
import { relationsIn } from '../schema/relations-in.js';
import { quoted, type Tables } from '../tables/schema.js';

/** Maximum duration of a report. Applies to logins of the role itself, not of its members. */
const STATEMENT_TIMEOUT = '5min';
const REFUSED = '42501';
/** SQLSTATEs of a role that another process has just created: roles are shared by all databases of a server. */
const EXISTS = /^(42710|23505)$/;

/** Returns the statements that create the role. They need the privilege to create roles. */
export function readerRoleStatements(role: string): readonly string[] {
  const name = quoted(role);
  return [
    `CREATE ROLE ${name} NOLOGIN`,
    `ALTER ROLE ${name} SET default_transaction_read_only = on`,
    `ALTER ROLE ${name} SET statement_timeout = '${STATEMENT_TIMEOUT}'`,
    `ALTER ROLE ${name} SET jit = off`,
  ];
}

/** Returns the statements that grant the role the reports and nothing else. They need the owner of the reports or a superuser. */
export function readerGrantStatements(tables: Tables, role: string): readonly string[] {
  const [schema, name] = [quoted(tables.reportingSchema), quoted(role)];
  return [...schemaGrants(tables, role), `GRANT SELECT ON ALL TABLES IN SCHEMA ${schema} TO ${name}`];
}

function schemaGrants({ reportingSchema }: Tables, role: string): readonly string[] {
  const [schema, name] = [quoted(reportingSchema), quoted(role)];
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${name}`,
    `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${name}`,
  ];
}

/** The state of the role that reads the reports. */
export interface ReaderRole {
  readonly exists: boolean;
  /** The role can use the schema and read every view in it. */
  readonly reads: boolean;
}

/** Roles that read the reports, and other places that the reader role reads: facts for people. */
export interface ReportReaders {
  /**
   * Logins, and `PUBLIC` for all of them, that can read a relation of scanfeed, if need be by SET ROLE, besides superusers, the owner
   * of the reports and the connected role. In parentheses: what a login can read that cannot read the view `runs`.
   */
  readonly logins: readonly string[];
  /** Other databases, and reports of other schemas, in which the reader role has privileges. */
  readonly elsewhere: readonly string[];
}

/** @param role the reader role; null: none is named */
export async function findReaders({ db, tables }: StoreConnection, role: string | null): Promise<ReportReaders> {
  const { rows } = await sql<ReportReaders>`
    WITH relation AS MATERIALIZED ( -- the view runs, whose text is empty, is the first
      SELECT oid, relnamespace,
        CASE WHEN relname = 'runs' AND relkind = 'v' THEN '' ELSE format(' (%s.%I)', relnamespace::regnamespace, relname) END AS text
      FROM pg_class
      WHERE relkind IN ('r', 'v', 'm', 'p') AND oid IN (
        SELECT * FROM ${relationsIn(tables.schema)} AS own UNION SELECT * FROM ${relationsIn(tables.reportingSchema)} AS own)
      ORDER BY text
    ),
    reader AS MATERIALIZED (
      SELECT role.oid, (SELECT text FROM relation
        WHERE has_schema_privilege(role.oid, relnamespace, 'USAGE') AND has_any_column_privilege(role.oid, relation.oid, 'SELECT')
        LIMIT 1) AS text
      FROM (SELECT oid FROM pg_roles UNION ALL SELECT 0) AS role -- 0 is PUBLIC
    ),
    login AS (
      SELECT oid, rolname::text AS name FROM pg_roles
      WHERE rolcanlogin AND NOT rolsuper AND rolname <> current_user
        AND has_database_privilege(oid, current_database(), 'CONNECT')
      UNION ALL SELECT 0, 'PUBLIC'
    )
    SELECT ARRAY(SELECT name || min(text)
        FROM login JOIN reader ON reader.oid = login.oid OR pg_has_role(login.oid, reader.oid, 'MEMBER')
        WHERE login.oid <> runs.relowner AND text IS NOT NULL
        GROUP BY name ORDER BY name <> 'PUBLIC', name COLLATE "C") AS logins,
      ARRAY(SELECT DISTINCT 'the database ' || datname
          FROM pg_shdepend JOIN pg_roles AS reader ON refclassid = 'pg_authid'::regclass AND refobjid = reader.oid
          JOIN pg_database ON pg_database.oid = dbid
          WHERE rolname = ${role} AND datname <> current_database()
        UNION ALL
        SELECT 'the schema ' || nspname FROM pg_class AS other JOIN pg_namespace ON pg_namespace.oid = relnamespace,
          (SELECT oid FROM pg_roles WHERE rolname = ${role}) AS reader
        WHERE relname = 'productive_runs' AND relkind = 'v' AND relnamespace <> runs.relnamespace
          AND has_schema_privilege(reader.oid, relnamespace, 'USAGE')
          AND has_table_privilege(reader.oid, other.oid, 'SELECT')
        ORDER BY 1) AS elsewhere
    FROM pg_class AS runs WHERE oid = to_regclass(${`${quoted(tables.reportingSchema)}.runs`})`.execute(db);
  return rows[0] ?? { logins: [], elsewhere: [] };
}

export async function inspectReaderRole({ db, tables }: StoreConnection, role: string): Promise<ReaderRole> {
  const { rows } = await sql<ReaderRole>`
    SELECT reader.oid IS NOT NULL AS exists,
      COALESCE(has_schema_privilege(reader.oid, schema.oid, 'USAGE') AND NOT EXISTS (
        SELECT FROM pg_class WHERE oid IN ${relationsIn(tables.reportingSchema)}
          AND relkind = 'v' AND NOT has_table_privilege(reader.oid, pg_class.oid, 'SELECT')
      ), false) AS reads
    FROM (SELECT oid FROM pg_namespace WHERE nspname = ${tables.reportingSchema}) AS schema
    LEFT JOIN pg_roles AS reader ON reader.rolname = ${role}`.execute(db);
  return rows[0] ?? { exists: false, reads: false };
}

/**
 * Creates the role if it is missing, and grants it the existing views. Checks first, so that no privileges are needed if there is
 * nothing to do. Returns false if the connected role lacks the privilege; an administrator then has to run the statements.
 */
export async function grantReader(connection: StoreConnection, role: string): Promise<boolean> {
  const found = await inspectReaderRole(connection, role);
  if (found.reads) return true;
  try {
    if (!found.exists) await createRole(connection, role);
    await grantViews(connection, role);
  } catch (error) {
    if (sqlstateOf(error) === REFUSED) return false;
    throw error;
  }
  return (await inspectReaderRole(connection, role)).reads;
}

async function createRole({ db }: StoreConnection, role: string): Promise<void> {
  try {
    await db.transaction().execute(async (tx) => {
      for (const statement of readerRoleStatements(role)) await sql.raw(statement).execute(tx);
    });
  } catch (error) {
    if (!EXISTS.test(sqlstateOf(error) ?? '')) throw error;
  }
}

/** Under a lock: two concurrent grants on one object would fail. Views belong either to the daemon or to the migration role. */
async function grantViews({ db, tables }: StoreConnection, role: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await lockMigrations(tx, tables);
    for (const statement of schemaGrants(tables, role)) await sql.raw(statement).execute(tx);
    const { rows } = await sql<{ view: string }>`
      SELECT relname AS view FROM pg_class WHERE oid IN ${relationsIn(tables.reportingSchema)}
        AND relkind = 'v' AND pg_has_role(relowner, 'USAGE') AND NOT has_table_privilege(${role}, oid, 'SELECT')`.execute(
      tx,
    );
    for (const { view } of rows) await grantView({ db: tx, tables }, view, role);
  });
}

/** Grants the role a new view. */
export async function grantView({ db, tables }: StoreConnection, view: string, role: string): Promise<void> {
  await sql`GRANT SELECT ON ${sql.id(tables.reportingSchema, view)} TO ${sql.id(role)}`.execute(db);
}
