import { systemClock } from '../../src/core/clock.js';
import { classifyError } from '../../src/core/errors.js';
import { type DatabaseOptions, openDatabase } from '../../src/storage/connection/pool.js';
import { createStore } from '../../src/storage/store.js';
import type { FeedService, Stage } from '../../src/sync/ports/index.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { type EngineOptions, engineContext, silentObserver } from './engine.js';
import { connectionOf, TEST_SCHEMA } from './store.js';

export interface Followed {
  /** Entries counted as new: those whose commit was known to have succeeded. */
  readonly inserted: number;
  /** Commits known to have succeeded. */
  readonly commits: number;
  /** Kinds of the failures, in order. */
  readonly failures: readonly `${Stage} ${string}`[];
}

/** The machine's clock, without pauses after failures: tests check that it retries, not when. */
const impatientClock = { ...systemClock, random: () => 0 };

export interface FollowOptions {
  readonly url: string;
  readonly feed: string;
  readonly service: FeedService;
  readonly database?: Partial<DatabaseOptions>;
  readonly context?: EngineOptions;
  readonly onCommitted?: () => void;
  /** Called after each failure, before the retry. */
  readonly onFailed?: () => void;
}

/** Follows a feed into PostgreSQL with the engine and the store as they are, until the end of the feed is reached. */
export async function followToTheEnd(options: FollowOptions, signal?: AbortSignal): Promise<Followed> {
  const database = openDatabase({ connection: connectionOf(options.url), maxConnections: 1, ...options.database });
  const store = createStore(database, {
    schema: TEST_SCHEMA,
    pendingRetryMs: 30_000,
    keptDays: null,
    monotonic: systemClock.monotonic,
  });
  const done = new AbortController();
  const stop = signal === undefined ? done.signal : AbortSignal.any([signal, done.signal]);
  const followed = { inserted: 0, commits: 0, failures: [] as `${Stage} ${string}`[] };
  const parts = { service: options.service, store, clock: impatientClock };
  try {
    await syncFeed(
      engineContext({
        ...parts,
        ...options.context,
        identity: { ...options.context?.identity, name: options.feed },
        observer: silentObserver({
          committed: ({ inserted }) => {
            followed.inserted += inserted;
            followed.commits += 1;
            options.onCommitted?.();
          },
          polled: (outcome) => outcome === 'end' && done.abort(),
          failed: (stage, error) => {
            followed.failures.push(`${stage} ${classifyError(error).kind}`);
            options.onFailed?.();
          },
        }),
      }),
      stop,
    );
  } finally {
    await database.close();
  }
  return followed;
}
