import type { DatabaseSettings } from '../settings/settings.js';
import { type Database, openDatabase } from '../storage/connection/pool.js';
import { connectStore } from '../storage/connection/store-connection.js';
import { grantReader, readerGrantStatements, readerRoleStatements } from '../storage/reporting/reader-role.js';
import { grantDaemon } from '../storage/schema/daemon-role.js';
import {
  inspectSchema,
  type Migration,
  migrate,
  readMigrations,
  requireSchema,
  requireVersion,
} from '../storage/schema/migrate.js';
import { tablesOf } from '../storage/schema/schema.js';

/**
 * Applies missing migrations over the direct connection, and gives the daemon's role its rights where that is another; the
 * names of what was applied. Rejects, with the remedy, where this release cannot work on the schema all the same.
 * @param known the migrations to have; by default those that stand beside the program
 * @param signal cuts the connection, so that nothing of a migration under way stays
 */
export function migrateSchema(
  settings: DatabaseSettings,
  known?: readonly Migration[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  return overDirectConnection(settings, signal, async (database) => {
    const connection = connectStore(database, settings.schema);
    const migrations = known ?? (await readMigrations());
    const applied = await migrate(connection, migrations);
    const daemon = settings.connection.user;
    if (daemon !== undefined && daemon !== settings.migrationConnection.user) await grantDaemon(connection, daemon);
    await requireSchema(connection, migrations);
    return applied.map(({ version, name }) => `${version} ${name}`);
  });
}

/**
 * Makes the reader role and lets it read the reports, over the direct connection. False: the role that is connected may
 * not; see {@link readerRoleHelp}.
 * @param signal cuts the connection
 */
export function prepareReaderRole(settings: DatabaseSettings, signal?: AbortSignal): Promise<boolean> {
  const { schema, readerRole } = settings;
  return overDirectConnection(settings, signal, (database) => grantReader(connectStore(database, schema), readerRole));
}

async function overDirectConnection<T>(
  settings: DatabaseSettings,
  signal: AbortSignal | undefined,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const database = openDatabase({ connection: settings.migrationConnection, maxConnections: 1 });
  const cut = () => void database.close();
  signal?.addEventListener('abort', cut);
  try {
    return await work(database);
  } finally {
    signal?.removeEventListener('abort', cut);
    await database.close();
  }
}

/** What a person with more rights has to run so that reports can be read: SQL, ready to paste. */
export function readerRoleHelp({ schema, readerRole }: DatabaseSettings): string {
  const statements = [...readerRoleStatements(readerRole), ...readerGrantStatements(tablesOf(schema), readerRole)];
  return statements.map((statement) => `${statement};\n`).join('');
}

/** Rejects, with the remedy, unless this release can work on the schema. */
export async function checkSchema(
  settings: DatabaseSettings,
  database: Database,
  known?: readonly Migration[],
): Promise<void> {
  await requireSchema(connectStore(database, settings.schema), known ?? (await readMigrations()));
}

/** Brings the schema up to date where that is wanted, and makes sure that this release can work on it. */
export async function prepareSchema(
  settings: DatabaseSettings,
  database: Database,
  known: readonly Migration[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const connection = connectStore(database, settings.schema);
  const state = await inspectSchema(connection, known);
  signal.throwIfAborted();
  // Without leave to migrate it ends here. A daemon asks again and again: no statements that the server would refuse, and note.
  if (!settings.autoMigrate || state.tooNew) requireVersion(state, connection.tables);
  const applied = state.missing.length > 0 ? await migrateSchema(settings, known, signal) : [];
  await checkSchema(settings, database, known);
  return applied;
}
