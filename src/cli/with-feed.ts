import { Option } from 'commander';
import type { Group } from '../settings/variables.js';
import { readSettings, type SettingsFor } from '../settings.js';
import { type FeedRow, listFeedNames, readFeed } from '../storage/feed.js';
import type { Database } from '../storage/pool.js';
import { type Tables, tablesOf } from '../storage/schema.js';
import type { CommandProcess } from './command-process.js';
import { CommandFailure } from './exit.js';
import { checkSchema, withDatabase } from './open-database.js';

/** A feed and everything to work on it. */
export interface FeedAtWork<G extends Group> {
  readonly settings: SettingsFor<G | 'feed' | 'database'>;
  readonly database: Database;
  readonly tables: Tables;
  readonly feed: FeedRow;
}

/** `--feed NAME` of every command that works on one feed. */
export function feedOption(): Option {
  return new Option('--feed <name>', 'the feed (default: SCANFEED_FEED)');
}

/**
 * Reads the settings, opens the database and finds the feed.
 * @param need groups of settings besides those of the feed and the database
 * @throws CommandFailure where there is no such feed
 */
export async function withFeed<T, G extends Group = never>(
  { env }: CommandProcess,
  { feed: named, need = [] }: { readonly feed?: string | undefined; readonly need?: readonly G[] },
  work: (context: FeedAtWork<G>) => Promise<T>,
): Promise<T> {
  const settings = readSettings<G | 'feed' | 'database'>(env, { need: ['feed', 'database', ...need] });
  const { database: databaseSettings, feed: feedSettings } = settings as SettingsFor<'feed' | 'database'>;
  return withDatabase(databaseSettings, async (database) => {
    await checkSchema(databaseSettings, database);
    const tables = tablesOf(databaseSettings.schema);
    const feed = await requireFeed(database, tables, named ?? feedSettings.name);
    return work({ settings, database, tables, feed });
  });
}

async function requireFeed(database: Database, tables: Tables, name: string): Promise<FeedRow> {
  const feed = await readFeed(database.sql, tables, name);
  if (feed !== null) return feed;
  const names = await listFeedNames(database.sql, tables);
  const known = names.length === 0 ? 'none was ever started' : `there are: ${names.join(', ')}`;
  throw new CommandFailure(`there is no feed ${JSON.stringify(name)} in the schema ${tables.schema}; ${known}`);
}
