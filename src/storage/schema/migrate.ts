import { type QueryExecutorProvider, sql } from 'kysely';
import { limitLockWaits, type StoreConnection } from '../connection/store-connection.js';
import { quoted, type Tables } from '../tables/schema.js';
import { inspectSchema } from './check-schema.js';
import type { Migration } from './read-migrations.js';

/**
 * Key of the advisory lock that release 0.1.0 takes for the migrations of any schema; with a schema's name, the seed of its key.
 */
const MIGRATION_LOCK = 7_262_173_001;

/** Maximum time to wait for transactions that have used a table or view, seconds: longer than an ordinary commit takes. */
const LOCK_WAIT_SECONDS = 3;

/** The table of applied migrations. */
const LEDGER = `
  CREATE TABLE IF NOT EXISTS :"schema".migrations (
    version    integer PRIMARY KEY,
    name       text COLLATE "C" NOT NULL,
    works_from integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  COMMENT ON TABLE :"schema".migrations IS 'Migrations applied to this schema';
  COMMENT ON COLUMN :"schema".migrations.version IS 'Number of the migration';
  COMMENT ON COLUMN :"schema".migrations.name IS 'What it adds';
  COMMENT ON COLUMN :"schema".migrations.works_from IS 'The oldest schema version whose release can still use the schema';
  COMMENT ON COLUMN :"schema".migrations.applied_at IS 'When it was applied';
  COMMENT ON SCHEMA :"schema"
    IS 'Tables of scanfeed. Reports read the views in the schema with the suffix _reporting instead.'`;

/**
 * Applies missing migrations in one transaction, under a lock of the transaction, so that several processes can start at once,
 * even through PgBouncer. Returns the applied migrations. Rejects with `lock_timeout`, to be tried again, if an open transaction has used
 * one of the tables. Also repairs the functions of a renamed schema.
 */
export async function migrate(
  connection: StoreConnection,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  for (const statement of await findOutdatedPaths(connection)) await sql.raw(statement).execute(connection.db);
  // Usually there is nothing to do; then no privilege to create anything is needed.
  if ((await inspectSchema(connection, migrations)).missing.length === 0) return [];
  const { db, tables } = connection;
  return db.transaction().execute(async (tx) => {
    await lockMigrations(tx, tables);
    await limitLockWaits(tx, LOCK_WAIT_SECONDS);
    await createSchema(tx, tables.schema);
    await createSchema(tx, tables.reportingSchema);
    await sql.raw(withNames(LEDGER, tables)).execute(tx);
    const { missing } = await inspectSchema({ db: tx, tables }, migrations);
    for (const { version, name, worksFrom, text } of missing) {
      await sql.raw(withNames(text, tables)).execute(tx);
      await sql`
        INSERT INTO ${tables.migrations} (version, name, works_from) VALUES (${version}, ${name}, ${worksFrom})`.execute(
        tx,
      );
    }
    return missing;
  });
}

/** Returns the statements that repair the functions after ALTER SCHEMA … RENAME: they search the schemas by their names. */
export async function findOutdatedPaths({ db, tables }: StoreConnection): Promise<readonly string[]> {
  const { schema, reportingSchema } = tables;
  const { rows } = await sql<{ statement: string }>`
    SELECT format('ALTER FUNCTION %s SET search_path = %I,%s pg_temp', pg_proc.oid::regprocedure, ${schema}::text,
      CASE WHEN path LIKE '%,%,%' THEN format(' %I,', ${reportingSchema}::text) END) AS statement
    FROM pg_proc, unnest(proconfig) AS path
    WHERE pronamespace = to_regnamespace(${quoted(schema)}) AND starts_with(path, 'search_path=')
      AND NOT starts_with(path, format('search_path=%I,', ${schema}::text))`.execute(db);
  return rows.map(({ statement }) => statement);
}

/**
 * Locks the migrations and grants of a schema until the transaction ends. Those of other schemas do not wait for them, but release
 * 0.1.0 and later releases wait for each other: it takes the shared key exclusively.
 */
export async function lockMigrations(tx: QueryExecutorProvider, { schema }: Tables): Promise<void> {
  await sql`
    SELECT pg_advisory_xact_lock_shared(${MIGRATION_LOCK}::bigint),
      pg_advisory_xact_lock(hashtextextended(${schema}, ${MIGRATION_LOCK}))`.execute(tx);
}

/** Replaces `:"schema"` and `:"reporting"`, like psql's `--set`. */
function withNames(text: string, { schema, reportingSchema }: Tables): string {
  return text.replaceAll(':"schema"', quoted(schema)).replaceAll(':"reporting"', quoted(reportingSchema));
}

/** Checks first: `IF NOT EXISTS` requires the privilege to create a schema even if it exists. */
async function createSchema(tx: QueryExecutorProvider, name: string): Promise<void> {
  const { rows } = await sql`SELECT FROM pg_namespace WHERE nspname = ${name}`.execute(tx);
  if (rows.length === 0) await sql`CREATE SCHEMA ${sql.id(name)}`.execute(tx);
}
