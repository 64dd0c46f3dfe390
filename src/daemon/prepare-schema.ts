import type { DatabaseSettings } from '../settings/settings.js';
import { SchemaMismatch } from '../storage/connection/errors.js';
import { type Database, openDatabase, STATEMENT_DEADLINE_MS } from '../storage/connection/pool.js';
import { connectStore } from '../storage/connection/store-connection.js';
import { grantReader, readerGrantStatements, readerRoleStatements } from '../storage/reporting/reader-role.js';
import { inspectSchema, requireSchema, requireVersion } from '../storage/schema/check-schema.js';
import { grantDaemon } from '../storage/schema/daemon-role.js';
import { migrate } from '../storage/schema/migrate.js';
import { type Migration, readMigrations } from '../storage/schema/read-migrations.js';
import { tablesOf } from '../storage/tables/schema.js';
import type { LimitedRun } from '../sync/waiting/limit-concurrency.js';

/** Deadline of a statement of a migration, milliseconds: it may rewrite a large table, or wait for another process's migration. */
const MIGRATION_DEADLINE_MS = 24 * 3_600_000;

/**
 * Applies missing migrations over the direct connection, and grants the daemon's role its privileges if it is another role. Returns
 * the names of the applied migrations. Rejects, with the remedy, if this release still cannot use the schema.
 * @param known the required migrations; by default those shipped with the program
 * @param signal closes the connection, which rolls back a running migration
 */
export function migrateSchema(
  settings: DatabaseSettings,
  known?: readonly Migration[],
  signal?: AbortSignal,
): Promise<readonly string[]> {
  const apply = async (database: Database) => {
    const connection = connectStore(database, settings.schema);
    const migrations = known ?? (await readMigrations());
    const applied = await migrate(connection, migrations);
    const daemon = settings.connection.user;
    if (daemon !== undefined && daemon !== settings.migrationConnection.user) await grantDaemon(connection, daemon);
    await requireSchema(connection, migrations);
    return applied.map(({ version, name }) => `${version} ${name}`);
  };
  return overDirectConnection(settings, signal, apply, MIGRATION_DEADLINE_MS);
}

/**
 * Creates the reader role and grants it the reports, over the direct connection. Returns false if the connected role lacks the
 * privilege; see {@link readerRoleHelp}.
 * @param signal closes the connection
 */
export function prepareReaderRole(settings: DatabaseSettings, role: string, signal?: AbortSignal): Promise<boolean> {
  const { schema } = settings;
  return overDirectConnection(settings, signal, (database) => grantReader(connectStore(database, schema), role));
}

async function overDirectConnection<T>(
  settings: DatabaseSettings,
  signal: AbortSignal | undefined,
  work: (database: Database) => Promise<T>,
  statementDeadlineMs = STATEMENT_DEADLINE_MS,
): Promise<T> {
  signal?.throwIfAborted();
  const database = openDatabase({
    ...{ connection: settings.migrationConnection, maxConnections: 1 },
    statementDeadlineMs,
  });
  const close = () => void database.close();
  signal?.addEventListener('abort', close);
  try {
    return await work(database);
  } finally {
    signal?.removeEventListener('abort', close);
    await database.close();
  }
}

/** Returns the SQL that an administrator has to run so that the reader role can read the reports. */
export function readerRoleHelp(schema: string, readerRole: string): string {
  const statements = [...readerRoleStatements(readerRole), ...readerGrantStatements(tablesOf(schema), readerRole)];
  return statements.map((statement) => `${statement};\n`).join('');
}

/** Rejects, with the remedy, unless this release can use the schema. */
export async function checkSchema(settings: DatabaseSettings, database: Database): Promise<void> {
  await requireSchema(connectStore(database, settings.schema), await readMigrations());
}

/**
 * Migrates the schema if that is enabled. Returns the names of the applied migrations. Rejects, with the remedy, unless this
 * release can use the schema.
 * @param limitDirect limits the direct connections that are open at once
 * @param wasUsable then one statement checks whether it still is. If it is gone now, it was dropped or renamed: a new one would
 * store runs again that were erased
 */
export async function prepareSchema(
  settings: DatabaseSettings,
  database: Database,
  known: readonly Migration[],
  limitDirect: LimitedRun,
  signal: AbortSignal,
  wasUsable = false,
): Promise<readonly string[]> {
  const connection = connectStore(database, settings.schema);
  if (wasUsable) {
    try {
      await requireSchema(connection, known);
      return [];
    } catch (error) {
      if (!(error instanceof SchemaMismatch)) throw error;
    }
  }
  const state = await inspectSchema(connection, known);
  signal.throwIfAborted();
  // Checks the version first: a daemon without `autoMigrate` retries often, and a refused statement would fill the server's log.
  const isGone = wasUsable && state.version === 0;
  if (!settings.autoMigrate || state.tooNew || isGone) requireVersion(state, connection.tables);
  const applyMissing = () => limitDirect(() => migrateSchema(settings, known, signal), { signal });
  const applied = state.missing.length > 0 ? await applyMissing() : [];
  await requireSchema(connection, known);
  return applied;
}
