import type { FeedStore } from '../sync/ports/index.js';
import { createCommits } from './commit/commit-page.js';
import type { CommitSettings } from './commit/commit-row.js';
import { createPositions } from './commit/position.js';
import { createQuarantine } from './commit/quarantine.js';
import { createDatabaseClock } from './connection/database-clock.js';
import type { Database } from './connection/pool.js';
import { connectStore } from './connection/store-connection.js';
import { createLeases } from './feeds/lease.js';
import { createStatus } from './feeds/status.js';
import { createPasses } from './passes/passes.js';
import { createPendingRetries } from './runs/pending.js';

export interface StoreSettings extends Omit<CommitSettings, 'databaseClock'> {
  readonly schema: string;
  /** The schema of the process's settings; by default that of the feed. */
  readonly home?: string;
}

/** Creates the engine's store in PostgreSQL. */
export function createStore(database: Database, settings: StoreSettings): FeedStore {
  const connection = connectStore(database, settings.schema, settings.home);
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
  };
}
