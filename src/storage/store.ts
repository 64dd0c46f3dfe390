import type { FeedStore } from '../sync/ports.js';
import { createCommits } from './commit-page.js';
import type { CommitSettings } from './commit-settings.js';
import { createDatabaseClock } from './database-clock.js';
import { createKeyReader } from './key-reader.js';
import { createLeases } from './lease.js';
import { createPasses } from './passes.js';
import { createPendingRetries } from './pending.js';
import type { Database } from './pool.js';
import { createPositions } from './position.js';
import { createQuarantine } from './quarantine.js';
import { createStatus } from './status.js';
import { connectStore } from './store-connection.js';

export interface StoreSettings extends Omit<CommitSettings, 'databaseClock'> {
  /** SCANFEED_DATABASE_SCHEMA. */
  readonly schema: string;
}

/** PostgreSQL as the engine's store. */
export function createStore(database: Database, settings: StoreSettings): FeedStore {
  const connection = connectStore(database, settings.schema);
  const { monotonic } = settings;
  const databaseClock = createDatabaseClock(monotonic);
  return {
    ...createLeases(connection, databaseClock),
    ...createPositions(connection, databaseClock),
    ...createStatus(connection, monotonic, databaseClock),
    ...createCommits(connection, { ...settings, databaseClock }),
    ...createPasses(connection),
    ...createPendingRetries(connection),
    ...createQuarantine(connection),
    ...createKeyReader(connection, database.free, monotonic),
  };
}
