import { createStore } from '../storage/store.js';
import type { Clock, FeedStore } from '../sync/ports.js';
import type { FeedAtWork } from './with-feed.js';

/** The store of a feed that a command works on, as the daemon would open it. */
export function openFeedStore({ settings, database }: FeedAtWork<'pending'>, clock: Clock): FeedStore {
  return createStore(database, {
    schema: settings.database.schema,
    leaseTtlMs: settings.feed.leaseTtlMs,
    pendingRetryMs: settings.pending.retryIntervalMs,
    keptDays: settings.database.retention.runs,
    monotonic: clock.monotonic,
  });
}
