import type { ListedFeeds } from './feeds-file.js';
import type { SettingsFor } from './settings.js';
import type { Group } from './variables.js';

type FeedSettings = SettingsFor<Group>;

/**
 * Compares the running feeds with the feeds file that was read again. A feed whose entry has become invalid is neither removed
 * nor changed.
 * @param running the settings of each feed by its name
 */
export function changesOf(running: ReadonlyMap<string, FeedSettings>, { feeds, invalid }: ListedFeeds) {
  const listed = new Set([...feeds.map(({ feed }) => feed.name), ...invalid.map(({ name }) => name)]);
  const added = feeds.filter(({ feed }) => !running.has(feed.name));
  /** Names of feeds that the file no longer lists. */
  const removed = [...running.keys()].filter((name) => !listed.has(name));
  const changed = feeds.filter((settings) => {
    const present = running.get(settings.feed.name);
    return present !== undefined && fingerprintOf(present) !== fingerprintOf(settings);
  });
  return { added, removed, changed };
}

/** Returns whether a feed has another schema or service, or a key that may be that of another organization. */
export function hasMoved(from: FeedSettings, to: FeedSettings): boolean {
  return (
    from.database.schema !== to.database.schema ||
    from.service.baseUrl !== to.service.baseUrl ||
    from.service.apiKeyFile !== to.service.apiKeyFile
  );
}

/**
 * Returns the values that an entry can set, as a text. JSON omits the secrets, which are functions; the path of the key's file
 * is compared instead. The connection is the same for all feeds of a process.
 */
function fingerprintOf({ warnings, database, ...groups }: FeedSettings): string {
  const { connection, migrationConnection, ...values } = database;
  return JSON.stringify({ ...groups, values });
}
