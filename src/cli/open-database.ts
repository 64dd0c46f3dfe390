import type { DatabaseSettings } from '../settings.js';
import { inspectSchema, type Migration, migrate, readMigrations, requireSchema } from '../storage/migrate.js';
import { type Database, openDatabase } from '../storage/pool.js';
import { tablesOf } from '../storage/schema.js';

/** Opens the database for one command and closes it when the work is over. */
export async function withDatabase<T>(
  settings: DatabaseSettings,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const database = openDatabase({ connection: settings.connection, maxConnections: 2 });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/**
 * Applies missing migrations over the direct connection; the names of what was applied.
 * @param known the migrations to have; by default those that stand beside the program
 * @param signal cuts the connection, so that nothing of a migration under way stays
 */
export async function migrateSchema(
  settings: DatabaseSettings,
  known?: readonly Migration[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const database = openDatabase({ connection: settings.migrationConnection, maxConnections: 1 });
  const cut = () => void database.close();
  signal?.addEventListener('abort', cut);
  try {
    const applied = await migrate(database.sql, tablesOf(settings.schema), known ?? (await readMigrations()));
    return applied.map(({ version, name }) => `${version} ${name}`);
  } finally {
    signal?.removeEventListener('abort', cut);
    await database.close();
  }
}

/** Rejects, with the remedy, unless this release can work on the schema. */
export async function checkSchema(
  settings: DatabaseSettings,
  database: Database,
  known?: readonly Migration[],
): Promise<void> {
  await requireSchema(database.sql, tablesOf(settings.schema), known ?? (await readMigrations()));
}

/** Brings the schema up to date where that is wanted, and makes sure that this release can work on it. */
export async function prepareSchema(
  settings: DatabaseSettings,
  database: Database,
  known: readonly Migration[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { missing } = await inspectSchema(database.sql, tablesOf(settings.schema), known);
  signal.throwIfAborted();
  const applied = missing.length > 0 && settings.autoMigrate ? await migrateSchema(settings, known, signal) : [];
  await checkSchema(settings, database, known);
  return applied;
}
