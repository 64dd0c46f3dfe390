import { type RawBuilder, sql } from 'kysely';
import { classifyError } from '../../core/errors.js';
import { missingClock, SchemaMismatch } from '../connection/errors.js';
import type { StoreConnection } from '../connection/store-connection.js';
import { quoted, type Tables } from '../tables/schema.js';
import type { Migration } from './read-migrations.js';
import { relationsIn } from './relations-in.js';

/** The state of a schema, relative to this release. */
export interface SchemaState {
  readonly version: number;
  readonly missing: readonly Migration[];
  /** This release cannot use it. */
  readonly tooNew: boolean;
}

/**
 * Returns the state of a schema. Rejects with a {@link SchemaMismatch} if the encoding of the database cannot store all texts, or
 * if only the reports of an earlier installation are left, which would prevent a new installation.
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
 * Rejects with a {@link SchemaMismatch} that names the remedy unless this release can use the schema. Needs only one statement if
 * it can: the daemon calls it regularly.
 */
export async function requireSchema(connection: StoreConnection, migrations: readonly Migration[]): Promise<void> {
  const { db, tables } = connection;
  const { schema, runs, deletedRuns, changeClock } = tables;
  // The next number of a change must be higher than all stored ones, because readers continue after the highest number they have
  // read. It is lower if the tables were restored without their sequence.
  const { rows } = await sql<InDatabase & Ledger & { has_clock: boolean; highest: string | null }>`
    SELECT ledger.*, ${IN_DATABASE}, EXISTS (SELECT FROM ${changeClock}) AS has_clock,
      CASE WHEN highest >= numbers.last_value + numbers.is_called::int THEN highest END AS highest
    FROM (${readLedger(tables)}) AS ledger, ${sql.id(schema, 'change_seq')} AS numbers,
      (SELECT GREATEST((SELECT max(change_seq) FROM ${runs}), (SELECT max(change_seq) FROM ${deletedRuns})) AS highest) AS stored`
    .execute(db)
    .catch(async (error) => {
      // A table is missing or not readable: the version in the ledger, if there is one, is more informative.
      if (classifyError(error).action === 'hold') requireVersion(await inspectSchema(connection, migrations), tables);
      throw error;
    });
  for (const row of rows) {
    requireEncoding(row);
    requireVersion(stateOf(row, migrations), tables);
    if (!row.has_clock) throw new SchemaMismatch(missingClock(`${quoted(schema)}.change_clock`));
    if (row.highest !== null) throw new SchemaMismatch(outdatedSequence(`${quoted(schema)}.change_seq`, row.highest));
  }
}

/** The highest versions of the applied migrations; null: none was applied. */
interface Ledger {
  readonly version: number | null;
  readonly works_from: number | null;
}

function readLedger({ migrations }: Tables): RawBuilder<Ledger> {
  return sql`SELECT max(version) AS version, max(works_from) AS works_from FROM ${migrations}`;
}

/** Returns version 0 if the schema or its ledger does not exist. */
function stateOf(ledger: Ledger | undefined, migrations: readonly Migration[]): SchemaState {
  const known = migrations.at(-1)?.version ?? 0;
  const version = ledger?.version ?? 0;
  const tooNew = (ledger?.works_from ?? 0) > known;
  return { version, missing: migrations.filter((migration) => migration.version > version), tooNew };
}

/** Throws a {@link SchemaMismatch} that names the remedy unless this release can use a schema of this version. */
export function requireVersion({ version, missing, tooNew }: SchemaState, { schema }: Tables): void {
  if (tooNew) {
    throw new SchemaMismatch(
      `the schema ${schema} is at version ${version}, too new for this release of scanfeed: run the newer release`,
    );
  }
  if (version === 0 && missing.length > 0) {
    throw new SchemaMismatch(
      `the schema ${schema} does not exist: if it was dropped or renamed, restore it; otherwise run \`scanfeed migrate\``,
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

/** Requires UTF8. The encoding of a database cannot be changed, so another database is needed. */
function requireEncoding({ database, encoding }: InDatabase): void {
  if (encoding === 'UTF8') return;
  throw new SchemaMismatch(
    `the database ${quoted(database)} has the encoding ${encoding}, which cannot store every text of the service: run CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and use that database`,
  );
}

/** If the tables are gone, so are the views that read them; the functions, of one text parameter each, are left. */
async function requireNoReports({ db, tables: { schema, reportingSchema } }: StoreConnection): Promise<void> {
  const { rows: left } = await sql`
    SELECT FROM pg_proc
    WHERE pronamespace = to_regnamespace(${quoted(reportingSchema)})
      AND proname IN ('german_number', 'german_date') AND proargtypes = '25'
      AND NOT EXISTS ${relationsIn(schema)}`.execute(db);
  if (left.length === 0) return;
  // Nothing is dropped automatically: the schema may contain other objects.
  throw new SchemaMismatch(
    `the tables of the schema ${schema} are gone, but ${reportingSchema} is left, so the schema cannot be created: restore both, or, to start over, run DROP SCHEMA ${quoted(reportingSchema)} CASCADE, which deletes everything in it; see docs/restoring.md`,
  );
}

function outdatedSequence(sequence: string, highest: string): string {
  return `the sequence ${sequence} is lower than the stored numbers, so readers would miss the next changes: run SELECT setval('${sequence}', ${highest} + 1000000000); see docs/restoring.md`;
}
