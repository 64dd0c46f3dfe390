import type { DatabaseSettings } from '../settings.js';
import { inspectSchema, migrate, readMigrations, requireSchema } from '../storage/migrate.js';
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

/** Applies missing migrations over the direct connection; the names of what was applied. */
export async function migrateSchema(settings: DatabaseSettings): Promise<readonly string[]> {
  const database = openDatabase({ connection: settings.migrationConnection, maxConnections: 1 });
  try {
    const applied = await migrate(database.sql, tablesOf(settings.schema), await readMigrations());
    return applied.map(({ version, name }) => `${version} ${name}`);
  } finally {
    await database.close();
  }
}

/** Rejects, with the remedy, unless this release can work on the schema. */
export async function checkSchema(settings: DatabaseSettings, database: Database): Promise<void> {
  await requireSchema(database.sql, tablesOf(settings.schema), await readMigrations());
}

/** Brings the schema up to date where that is wanted, and makes sure that this release can work on it. */
export async function prepareSchema(settings: DatabaseSettings, database: Database): Promise<readonly string[]> {
  const { missing } = await inspectSchema(database.sql, tablesOf(settings.schema), await readMigrations());
  const applied = missing.length > 0 && settings.autoMigrate ? await migrateSchema(settings) : [];
  await checkSchema(settings, database);
  return applied;
}
