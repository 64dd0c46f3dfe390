import { readdir, readFile } from 'node:fs/promises';
import { type QueryExecutorProvider, type RawBuilder, sql } from 'kysely';
import { classifyError } from '../../core/errors.js';
import { PACKAGE_FOLDER } from '../../core/package.js';
import { missingClock, SchemaMismatch } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { quoted, type Tables } from './schema.js';

/** A plain `.sql` file of `migrations/`, named `NNNN_what_it_adds.sql`. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The oldest version whose release still works on the schema after this migration (its `works-from` line). */
  readonly worksFrom: number;
  readonly text: string;
}

const MIGRATIONS = new URL('migrations/', PACKAGE_FOLDER);
/** Arbitrary, the same for all releases: one migrator at a time in a database. */
export const MIGRATION_LOCK = 7_262_173_001;

/** Reads the migrations that this release brings along, oldest first. */
export async function readMigrations(directory: URL = MIGRATIONS): Promise<readonly Migration[]> {
  const files = (await readdir(directory)).filter((file) => /^\d{4}_\w+\.sql$/.test(file)).sort();
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, directory), 'utf8');
      const version = Number(file.slice(0, 4));
      const worksFrom = Number(/^-- works-from: (\d+)$/m.exec(text)?.[1] ?? version);
      return { version, name: file.slice(5, -4), worksFrom, text };
    }),
  );
}

/** A schema against this release. */
export interface SchemaState {
  readonly version: number;
  readonly missing: readonly Migration[];
  /** This release cannot work on it. */
  readonly tooNew: boolean;
}

/**
 * Which migrations a schema has, if any. Rejects with a {@link SchemaMismatch} where the database cannot hold what the
 * service sends, and where of an earlier installation only the reports are left, so that they could not be made anew.
 */
export async function inspectSchema(
  connection: StoreConnection,
  migrations: readonly Migration[],
): Promise<SchemaState> {
  const { db, tables } = connection;
  const ledger = `${quoted(tables.schema)}.migrations`;
  const { rows: found } = await sql<InDatabase & { exists: boolean }>`
    SELECT to_regclass(${ledger}) IS NOT NULL AS exists, ${IN_DATABASE}`.execute(db);
  for (const database of found) requireEncoding(database);
  if (!found[0]?.exists) {
    await requireNoReports(connection);
    return stateOf(undefined, migrations);
  }
  const { rows: applied } = await readLedger(tables).execute(db);
  return stateOf(applied[0], migrations);
}

/**
 * Rejects with a {@link SchemaMismatch} that names the remedy unless this release can work on the schema. One statement where
 * it can: a daemon looks with each renewal of its lease.
 */
export async function requireSchema(connection: StoreConnection, migrations: readonly Migration[]): Promise<void> {
  const { db, tables } = connection;
  const { schema, runs, deletedRuns, changeClock } = tables;
  // The next number of a change must be higher than all that are stored: readers remember the highest that they have seen.
  // It is not where the tables were restored without their sequence.
  const { rows } = await sql<InDatabase & Ledger & { has_clock: boolean; highest: string | null }>`
    SELECT ledger.*, ${IN_DATABASE}, EXISTS (SELECT FROM ${changeClock}) AS has_clock,
      CASE WHEN highest >= numbers.last_value + numbers.is_called::int THEN highest END AS highest
    FROM (${readLedger(tables)}) AS ledger, ${sql.id(schema, 'change_seq')} AS numbers,
      (SELECT GREATEST((SELECT max(change_seq) FROM ${runs}), (SELECT max(change_seq) FROM ${deletedRuns})) AS highest) AS stored`
    .execute(db)
    .catch(async (error) => {
      // A table is missing or may not be read: what the ledger says, if there is one, says more.
      if (classifyError(error).action === 'hold') requireVersion(await inspectSchema(connection, migrations), tables);
      throw error;
    });
  for (const row of rows) {
    requireEncoding(row);
    requireVersion(stateOf(row, migrations), tables);
    if (!row.has_clock) throw new SchemaMismatch(missingClock(`${quoted(schema)}.change_clock`));
    if (row.highest !== null) throw new SchemaMismatch(numbersBehind(`${quoted(schema)}.change_seq`, row.highest));
  }
}

/** Of all that were applied; null: none was. */
interface Ledger {
  readonly version: number | null;
  readonly works_from: number | null;
}

function readLedger({ migrations }: Tables): RawBuilder<Ledger> {
  return sql`SELECT max(version) AS version, max(works_from) AS works_from FROM ${migrations}`;
}

/** Version 0 where the schema or its ledger does not exist. */
function stateOf(ledger: Ledger | undefined, migrations: readonly Migration[]): SchemaState {
  const known = migrations.at(-1)?.version ?? 0;
  const version = ledger?.version ?? 0;
  const tooNew = (ledger?.works_from ?? 0) > known;
  return { version, missing: migrations.filter((migration) => migration.version > version), tooNew };
}

/** Throws a {@link SchemaMismatch} that names the remedy unless this release can work on a schema of this version. */
export function requireVersion({ version, missing, tooNew }: SchemaState, { schema }: Tables): void {
  if (tooNew) {
    throw new SchemaMismatch(
      `the schema ${schema} is at version ${version}, too new for this release of scanfeed: run the newer release`,
    );
  }
  if (missing.length > 0) {
    throw new SchemaMismatch(
      `the schema ${schema} is at version ${version} and lacks ${missing.length} migration(s): run \`scanfeed migrate\``,
    );
  }
}

interface InDatabase {
  readonly database: string;
  readonly encoding: string;
}
const IN_DATABASE = sql`current_database() AS database, current_setting('server_encoding') AS encoding`;

/** The encoding of a database cannot be changed: another one is needed. */
function requireEncoding({ database, encoding }: InDatabase): void {
  if (encoding === 'UTF8') return;
  throw new SchemaMismatch(
    `the database ${quoted(database)} has the encoding ${encoding}, in which not every text of the service can be stored: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and use that one`,
  );
}

/** Where the tables are gone: views go with the tables they read, functions of ours (of one text each) stay. */
async function requireNoReports({ db, tables: { schema, reportingSchema } }: StoreConnection): Promise<void> {
  const { rows: left } = await sql`
    SELECT FROM pg_proc
    WHERE pronamespace = to_regnamespace(${quoted(reportingSchema)})
      AND proname IN ('german_number', 'german_date') AND proargtypes = '25'
      AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace(${quoted(schema)}))`.execute(db);
  if (left.length === 0) return;
  // Nothing is dropped for anybody: what else is in there is not known.
  throw new SchemaMismatch(
    `the tables of the schema ${schema} are gone and ${reportingSchema} is left, so that neither can be made anew: restore both, or, to begin anew, run DROP SCHEMA ${quoted(reportingSchema)} CASCADE, which takes all that is in it; see docs/restoring.md`,
  );
}

function numbersBehind(sequence: string, highest: string): string {
  return `the sequence ${sequence} stands behind the numbers that are stored, so that readers would miss what is stored next: run SELECT setval('${sequence}', ${highest} + 1000000000); see docs/restoring.md`;
}

/**
 * Applies what is missing, each starter waiting for the others, all in one transaction: a lock that ends with it works
 * through PgBouncer, and several starters cannot race. Returns what was applied.
 */
export async function migrate(
  connection: StoreConnection,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  // Nothing to do is the usual case, and one that needs no right to create anything.
  if ((await inspectSchema(connection, migrations)).missing.length === 0) return [];
  const { db, tables } = connection;
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(tx);
    await createSchema(tx, tables.schema);
    await createSchema(tx, tables.reportingSchema);
    await sql.raw(withNames(LEDGER, tables)).execute(tx);
    const { missing } = await inspectSchema({ db: tx, tables }, migrations);
    for (const { version, name, worksFrom, text } of missing) {
      await sql.raw(withNames(text, tables)).execute(tx);
      await tx.insertInto('migrations').values({ version, name, works_from: worksFrom }).execute();
    }
    return missing;
  });
}

/** Fills in `:"schema"` and `:"reporting"`, as psql's `--set` would. */
function withNames(text: string, { schema, reportingSchema }: Tables): string {
  return text.replaceAll(':"schema"', quoted(schema)).replaceAll(':"reporting"', quoted(reportingSchema));
}

/** Asks first: `IF NOT EXISTS` would want the right to create one even where there is nothing to do. */
async function createSchema(tx: QueryExecutorProvider, name: string): Promise<void> {
  const { rows } = await sql`SELECT FROM pg_namespace WHERE nspname = ${name}`.execute(tx);
  if (rows.length === 0) await sql`CREATE SCHEMA ${sql.id(name)}`.execute(tx);
}

/** What was applied to a schema. */
const LEDGER = `
  CREATE TABLE IF NOT EXISTS :"schema".migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    works_from integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  COMMENT ON TABLE :"schema".migrations IS 'Migrations applied to this schema';
  COMMENT ON COLUMN :"schema".migrations.version IS 'Number of the migration';
  COMMENT ON COLUMN :"schema".migrations.name IS 'What it adds';
  COMMENT ON COLUMN :"schema".migrations.works_from IS 'The oldest schema version whose release still works on this one';
  COMMENT ON COLUMN :"schema".migrations.applied_at IS 'When it was applied';
  COMMENT ON SCHEMA :"schema"
    IS 'Tables of scanfeed. Reports read the views of the schema with the suffix _reporting instead.'`;
