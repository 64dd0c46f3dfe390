import { changesOf, hasMoved } from '../../settings/feed-changes.js';
import type { ListedFeeds } from '../../settings/feeds-file.js';
import type { SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import type { FeedStart, RunningFeed } from './run-feed.js';

export type FeedSet = ReturnType<typeof createFeedSet>;

type Settings = SettingsFor<Group>;

interface Followed {
  readonly settings: Settings;
  readonly feed: RunningFeed;
  readonly stop: AbortController;
}

/** Starts a feed, which ends when the signal aborts. */
export type StartFeed = (settings: Settings, signal: AbortSignal, options: FeedStart) => RunningFeed;

/** Maximum time over which the starts of many feeds are spread, milliseconds. */
const MAX_SPREAD_MS = 10_000;

/** @param onFailed called when a feed has stopped because of a bug */
export function createFeedSet(start: StartFeed, onFailed: (error: unknown) => void) {
  const wanted = new Map<string, Settings>();
  const startOptions = new Map<string, FeedStart>();
  const followed = new Map<string, Followed>();

  /** Starts the feed if it is wanted. If it is already followed, but not with these settings, ends it first. */
  const update = (name: string) => {
    const settings = wanted.get(name);
    const current = followed.get(name);
    if (current !== undefined && current.settings !== settings) current.stop.abort();
    const options = startOptions.get(name);
    if (current !== undefined || settings === undefined || options === undefined) return;
    const stop = new AbortController();
    const feed = start(settings, stop.signal, options);
    followed.set(name, { settings, feed, stop });
    feed.stopped
      .finally(() => followed.delete(name))
      .then(() => update(name))
      .catch(onFailed);
  };

  const isMoved = (settings: Settings) => {
    const current = wanted.get(settings.feed.name);
    return current !== undefined && hasMoved(current, settings);
  };

  return {
    /** Returns the names of feeds to which the file gives another schema, service or key. */
    movedIn: ({ feeds }: ListedFeeds): readonly string[] => feeds.filter(isMoved).map(({ feed }) => feed.name),
    /** Starts new feeds, stops removed ones and restarts changed ones. All other feeds continue. */
    follow: (file: ListedFeeds): void => {
      const { added, removed, changed } = changesOf(wanted, file);
      const started = [...changed, ...added];
      for (const name of removed) {
        wanted.delete(name);
        startOptions.delete(name);
      }
      const keys = new Map<string, string | null>();
      for (const { database, service } of file.feeds)
        if (!keys.has(database.schema)) keys.set(database.schema, service.apiKeyFile);
      for (const [index, settings] of started.entries()) {
        const { feed, database, service } = settings;
        startOptions.set(feed.name, {
          firstPollInMs: (index / started.length) * Math.min(feed.pollIntervalMs, MAX_SPREAD_MS),
          // It stays so until a restart: the feed may hold for this reason when its entry changes again.
          hasMoved: startOptions.get(feed.name)?.hasMoved === true || isMoved(settings),
          hasOtherKey: keys.get(database.schema) !== service.apiKeyFile,
        });
        wanted.set(feed.name, settings);
      }
      for (const name of [...removed, ...started.map(({ feed }) => feed.name)]) update(name);
    },
    running: (): readonly RunningFeed[] => [...followed.values()].map(({ feed }) => feed),
    /** Stops all feeds. Never rejects. */
    stop: async (): Promise<void> => {
      wanted.clear();
      const ends = [...followed.values()].map(({ feed, stop }) => {
        stop.abort();
        return feed.stopped;
      });
      await Promise.allSettled(ends);
    },
  };
}
