import { changesOf } from '../../settings/feed-changes.js';
import type { FeedsFile } from '../../settings/feeds-file.js';
import type { SettingsFor } from '../../settings/settings.js';
import type { Group } from '../../settings/variables.js';
import type { RunningFeed } from './run-feed.js';

/** The feeds that a process follows, each with its current settings. */
export interface FeedSet {
  /** Starts new feeds, stops removed ones and restarts changed ones. The others are not disturbed. */
  follow(file: Pick<FeedsFile, 'feeds' | 'invalid'>): void;
  running(): readonly RunningFeed[];
  /** Stops all feeds. Never rejects. */
  stop(): Promise<void>;
}

type Settings = SettingsFor<Group>;

interface Followed {
  readonly settings: Settings;
  readonly feed: RunningFeed;
  readonly stop: AbortController;
}

/** How a feed is started. */
export interface StartOptions {
  /** From 0 to 1: part of the maximum delay by which feeds that are started together are spread. */
  readonly startDelayFraction: number;
  /** Whether the process has just started, and follows its first feeds. */
  readonly isFirst: boolean;
}

/** Starts a feed, which ends when the signal aborts. */
export type StartFeed = (settings: Settings, signal: AbortSignal, options: StartOptions) => RunningFeed;

/**
 * @param onStopped called when a feed has stopped, for whatever reason
 * @param onFailed called after that, if the reason is a bug
 */
export function createFeedSet(
  start: StartFeed,
  onStopped: (feed: RunningFeed) => void,
  onFailed: (error: unknown) => void,
): FeedSet {
  /** The settings with which each feed is to be followed. */
  const wanted = new Map<string, Settings>();
  const startDelayFractions = new Map<string, number>();
  const followed = new Map<string, Followed>();
  let isFirst = true;

  /** Starts the feed if it is wanted. If it is already followed, but not with these settings, ends it first. */
  const update = (name: string) => {
    const settings = wanted.get(name);
    const current = followed.get(name);
    if (current !== undefined && current.settings !== settings) current.stop.abort();
    if (current !== undefined || settings === undefined) return;
    const stop = new AbortController();
    const startDelayFraction = startDelayFractions.get(name) ?? 0;
    const feed = start(settings, stop.signal, { startDelayFraction, isFirst });
    followed.set(name, { settings, feed, stop });
    const remove = () => {
      followed.delete(name);
      onStopped(feed);
    };
    feed.stopped
      .finally(remove)
      .then(() => update(name))
      .catch(onFailed);
  };

  return {
    follow: (file) => {
      const { added, removed, changed } = changesOf(wanted, file);
      const started = [...changed, ...added];
      for (const name of removed) {
        wanted.delete(name);
        startDelayFractions.delete(name);
      }
      for (const [index, settings] of started.entries()) {
        wanted.set(settings.feed.name, settings);
        startDelayFractions.set(settings.feed.name, index / started.length);
      }
      for (const name of [...removed, ...started.map(({ feed }) => feed.name)]) update(name);
      isFirst = false;
    },
    running: () => [...followed.values()].map(({ feed }) => feed),
    stop: async () => {
      wanted.clear();
      const ends = [...followed.values()].map(({ feed, stop }) => {
        stop.abort();
        return feed.stopped;
      });
      await Promise.allSettled(ends);
    },
  };
}
