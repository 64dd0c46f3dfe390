import { readdir, readFile } from 'node:fs/promises';
import { type Kysely, sql } from 'kysely';
import { missingClock, SchemaMismatch } from './errors.js';
import { quoted, type Tables } from './schema.js';

/** A plain `.sql` file of `migrations/`, named `NNNN_what_it_adds.sql`. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The oldest version whose release still works on the schema after this migration (its `works-from` line). */
  readonly worksFrom: number;
  readonly text: string;
}

const MIGRATIONS = new URL('../../migrations/', import.meta.url);
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

/**
 * The schema's state against this release: applied version, and whether this release can work on it. Rejects with a
 * {@link SchemaMismatch} where the database cannot hold what the service sends.
 */
export async function inspectSchema(
  db: Kysely<unknown>,
  tables: Tables,
  migrations: readonly Migration[],
): Promise<{ readonly version: number; readonly missing: readonly Migration[]; readonly tooNew: boolean }> {
  const known = migrations.at(-1)?.version ?? 0;
  const { version, worksFrom } = await appliedVersion(db, tables);
  return { version, missing: migrations.filter((m) => m.version > version), tooNew: worksFrom > known };
}

/** Rejects with a {@link SchemaMismatch} that names the remedy unless this release can work on the schema. */
export async function requireSchema(
  db: Kysely<unknown>,
  tables: Tables,
  migrations: readonly Migration[],
): Promise<void> {
  const { version, missing, tooNew } = await inspectSchema(db, tables, migrations);
  if (tooNew) {
    throw new SchemaMismatch(
      `the schema ${tables.schema} is at version ${version}, too new for this release of scanfeed: run the newer release`,
    );
  }
  if (missing.length > 0) {
    throw new SchemaMismatch(
      `the schema ${tables.schema} is at version ${version} and lacks ${missing.length} migration(s): run \`scanfeed migrate\``,
    );
  }
  const clock = await sql`SELECT FROM ${tables.changeClock}`.execute(db);
  if (clock.rows.length === 0) throw new SchemaMismatch(missingClock(`${quoted(tables.schema)}.change_clock`));
  await requireNumbersAhead(db, tables);
}

/**
 * The next number of a change must be higher than all that are stored: readers remember the highest that they have seen.
 * It is not where the tables were restored without their sequence.
 */
async function requireNumbersAhead(db: Kysely<unknown>, { schema, runs, deletedRuns }: Tables): Promise<void> {
  const { rows } = await sql<{ highest: string }>`
    SELECT highest FROM (
      SELECT GREATEST((SELECT max(change_seq) FROM ${runs}), (SELECT max(change_seq) FROM ${deletedRuns})) AS highest
    ) AS stored, ${sql.id(schema, 'change_seq')} AS numbers
    WHERE highest >= numbers.last_value + numbers.is_called::int`.execute(db);
  if (rows[0] === undefined) return;
  const sequence = `${quoted(schema)}.change_seq`;
  throw new SchemaMismatch(
    `the sequence ${sequence} stands behind the numbers that are stored, so that readers would miss what is stored next: run SELECT setval('${sequence}', ${rows[0].highest} + 1000000000); see docs/restoring.md`,
  );
}

/**
 * Applies what is missing, each starter waiting for the others, all in one transaction: a lock that ends with it works
 * through PgBouncer, and several starters cannot race. Returns what was applied.
 */
export async function migrate(
  db: Kysely<unknown>,
  tables: Tables,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  // Nothing to do is the usual case, and one that needs no right to create anything.
  if ((await inspectSchema(db, tables, migrations)).missing.length === 0) return [];
  return db.transaction().execute(async (tx) => {
    await sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)`.execute(tx);
    await createSchema(tx, tables.schema);
    await createSchema(tx, tables.reportingSchema);
    await createLedger(tx, tables);
    const { missing } = await inspectSchema(tx, tables, migrations);
    for (const migration of missing) {
      await sql.raw(withNames(migration.text, tables)).execute(tx);
      await sql`
        INSERT INTO ${tables.migrations} (version, name, works_from)
        VALUES (${migration.version}, ${migration.name}, ${migration.worksFrom})`.execute(tx);
    }
    return missing;
  });
}

/** Fills in `:"schema"` and `:"reporting"`, as psql's `--set` would. */
function withNames(text: string, { schema, reportingSchema }: Tables): string {
  return text.replaceAll(':"schema"', quoted(schema)).replaceAll(':"reporting"', quoted(reportingSchema));
}

/** Asks first: `IF NOT EXISTS` would want the right to create one even where there is nothing to do. */
async function createSchema(tx: Kysely<unknown>, name: string): Promise<void> {
  const { rows } = await sql`SELECT FROM pg_namespace WHERE nspname = ${name}`.execute(tx);
  if (rows.length === 0) await sql`CREATE SCHEMA ${sql.id(name)}`.execute(tx);
}

async function createLedger(tx: Kysely<unknown>, tables: Tables): Promise<void> {
  await sql`
    CREATE TABLE IF NOT EXISTS ${tables.migrations} (
      version    integer PRIMARY KEY,
      name       text NOT NULL,
      works_from integer NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )`.execute(tx);
  const comments: readonly (readonly [column: string, comment: string])[] = [
    ['version', 'Number of the migration'],
    ['name', 'What it adds'],
    ['works_from', 'The oldest schema version whose release still works on this one'],
    ['applied_at', 'When it was applied'],
  ];
  await sql`COMMENT ON TABLE ${tables.migrations} IS 'Migrations applied to this schema'`.execute(tx);
  for (const [column, comment] of comments) {
    await sql`COMMENT ON COLUMN ${tables.migrations}.${sql.id(column)} IS ${sql.lit(comment)}`.execute(tx);
  }
  await sql`COMMENT ON SCHEMA ${sql.id(tables.schema)} IS ${sql.lit(
    'Tables of scanfeed. Reports read the views of the schema with the suffix _reporting instead.',
  )}`.execute(tx);
}

/** The encoding of a database cannot be changed: another one is needed. */
function wrongEncoding(database: string, encoding: string): string {
  return `the database ${quoted(database)} has the encoding ${encoding}, in which not every text of the service can be stored: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and use that one`;
}

/** Version 0 where the schema or its ledger does not exist. */
async function appliedVersion(db: Kysely<unknown>, tables: Tables): Promise<{ version: number; worksFrom: number }> {
  const ledger = `${quoted(tables.schema)}.migrations`;
  const found = await sql<{ exists: boolean; database: string; encoding: string }>`
    SELECT to_regclass(${ledger}) IS NOT NULL AS exists, current_database() AS database,
      current_setting('server_encoding') AS encoding`.execute(db);
  for (const { database, encoding } of found.rows) {
    if (encoding !== 'UTF8') throw new SchemaMismatch(wrongEncoding(database, encoding));
  }
  if (!found.rows[0]?.exists) return { version: 0, worksFrom: 0 };
  const applied = await sql<{ version: number | null; works_from: number | null }>`
    SELECT max(version) AS version, max(works_from) AS works_from FROM ${tables.migrations}`.execute(db);
  return { version: applied.rows[0]?.version ?? 0, worksFrom: applied.rows[0]?.works_from ?? 0 };
}
