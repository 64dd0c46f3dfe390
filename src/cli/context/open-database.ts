import { checkSchema } from '../../daemon/prepare-schema.js';
import type { DatabaseSettings } from '../../settings/settings.js';
import { type Database, openDatabase } from '../../storage/connection/pool.js';
import { connectStore } from '../../storage/connection/store-connection.js';
import { createOperatorStore, type OperatorStore } from '../../storage/operator-store.js';

/**
 * Opens the database for one command and closes it when the work is over. Rejects, with the remedy, unless this release can
 * work on the schema.
 */
export async function withDatabase<T>(
  settings: DatabaseSettings,
  work: (store: OperatorStore, database: Database) => Promise<T>,
): Promise<T> {
  const database = openDatabase({ connection: settings.connection, maxConnections: 2 });
  try {
    await checkSchema(settings, database);
    return await work(createOperatorStore(connectStore(database, settings.schema)), database);
  } finally {
    await database.close();
  }
}
