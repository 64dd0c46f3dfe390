import type { Clock } from '../../core/clock.js';
import { isValueRefused } from '../../core/errors.js';
import { checkSchema } from '../../daemon/prepare-schema.js';
import type { DatabaseSettings, SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import { type Database, openDatabase, STATEMENT_DEADLINE_MS } from '../../storage/connection/pool.js';
import { connectStore } from '../../storage/connection/store-connection.js';
import type { FeedRow } from '../../storage/operator/feeds.js';
import { createOperatorStore, type OperatorStore } from '../../storage/operator/operator-store.js';
import { createStore } from '../../storage/store.js';
import type { FeedStore, LeaseGrant } from '../../sync/ports/index.js';
import type { CommandProcess } from './command-process.js';
import { CommandFailure, EXIT } from './exit.js';
import { readFeedSettings } from './feed-settings.js';

/**
 * Opens the database for one command and closes it after the work. Rejects with the remedy if this release does not support
 * the schema.
 * @param statementDeadlineMs deadline of a statement, milliseconds
 */
export async function withDatabase<T>(
  settings: DatabaseSettings,
  work: (store: OperatorStore, database: Database) => Promise<T>,
  statementDeadlineMs = STATEMENT_DEADLINE_MS,
): Promise<T> {
  return withConnection(
    settings,
    async (database) => work(await openSchema(settings, database), database),
    statementDeadlineMs,
  );
}

/** Opens the database, for any number of its schemas, and closes it after the work. */
export async function withConnection<T>(
  { connection }: DatabaseSettings,
  work: (database: Database) => Promise<T>,
  statementDeadlineMs = STATEMENT_DEADLINE_MS,
): Promise<T> {
  const database = openDatabase({ connection, maxConnections: 2, statementDeadlineMs });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Opens a schema of the database. Rejects with the remedy if this release does not support the schema. */
export async function openSchema(settings: DatabaseSettings, database: Database): Promise<OperatorStore> {
  await checkSchema(settings, database);
  return createOperatorStore(connectStore(database, settings.schema, settings.homeSchema));
}

export interface FeedCommandContext<G extends Group = never> extends OperatorStore {
  readonly settings: SettingsFor<G | 'feed' | 'database'>;
  readonly database: Database;
  readonly feed: FeedRow;
}

/**
 * Reads the settings, opens the database and finds the feed.
 * @param need further groups of settings besides those of the feed and the database
 * @throws CommandFailure if there is no such feed
 */
export async function withFeed<T, G extends Group = never>(
  io: CommandProcess,
  { feed: named, need = [] }: { readonly feed?: string | undefined; readonly need?: readonly G[] },
  work: (context: FeedCommandContext<G>) => Promise<T>,
): Promise<T> {
  const settings = await readFeedSettings<G | 'feed' | 'database'>(io, {
    feed: named,
    need: ['feed', 'database', ...need],
  });
  return withFeedOf(settings, work);
}

/** Opens the database and finds the feed. @throws CommandFailure if there is no such feed */
export async function withFeedOf<T, G extends Group = never>(
  settings: SettingsFor<G | 'feed' | 'database'>,
  work: (context: FeedCommandContext<G>) => Promise<T>,
): Promise<T> {
  const { database: databaseSettings, feed: feedSettings } = settings as SettingsFor<'feed' | 'database'>;
  return withDatabase(databaseSettings, async (store, database) => {
    const feed = await requireFeed(store, feedSettings.name);
    return work({ ...store, settings, database, feed });
  });
}

/** @throws CommandFailure if there is no such feed */
export async function requireFeed({ feeds, connection: { tables } }: OperatorStore, name: string): Promise<FeedRow> {
  const feed = await feeds.find(name);
  if (feed !== undefined) return feed;
  const names = await feeds.listNames();
  const known = names.length === 0 ? 'no feed has been started' : `existing feeds: ${names.join(', ')}`;
  throw new CommandFailure(`there is no feed ${JSON.stringify(name)} in the schema ${tables.schema}; ${known}`);
}

/** Opens the store of a feed with the daemon's settings. */
export function openFeedStore({ settings, database }: FeedCommandContext, clock: Clock): FeedStore {
  return createStore(database, {
    schema: settings.database.schema,
    home: settings.database.homeSchema,
    pendingRetryMs: settings.feed.pendingRetryMs,
    keptDays: settings.database.retention.runs,
    monotonic: clock.monotonic,
  });
}

/** Maximum number of consecutive changes of the leader. */
const TRIES = 20;

/**
 * Writes under the feed's current lease, whichever process holds it, and retries if the leader changed in the meantime. The
 * leader is not affected, and writes of an earlier epoch are fenced.
 * @param write resolves to null if it was fenced
 */
export async function withCurrentLease<T>(
  { feeds, feed: { name } }: FeedCommandContext,
  write: (lease: LeaseGrant) => Promise<T | null>,
): Promise<T> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const lease = await feeds.readLease(name);
    if (lease === null) throw new CommandFailure(`the feed ${name} has been removed`);
    const written = await write(lease);
    if (written !== null) return written;
  }
  throw new CommandFailure(`the feed ${name} keeps changing its leader; try again later`, EXIT.tryAgain);
}

/** Writes like {@link withCurrentLease}. Resolves to null if PostgreSQL refuses one of the values. */
export async function storeUnderLease<T>(
  work: FeedCommandContext,
  write: (lease: LeaseGrant) => Promise<T | null>,
): Promise<T | null> {
  try {
    return await withCurrentLease(work, write);
  } catch (error) {
    if (isValueRefused(error)) return null;
    throw error;
  }
}
