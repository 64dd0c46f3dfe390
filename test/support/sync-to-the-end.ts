import { systemClock } from '../../src/core/clock.js';
import type { CommitCounts } from '../../src/core/counts.js';
import type { Emulator } from '../../src/emulator/index.js';
import { ServiceClient } from '../../src/service/client.js';
import type { FeedStore } from '../../src/sync/ports/index.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { engineContext, silentObserver } from './engine.js';

/** Follows the whole feed from its beginning as the daemon does, through HTTP and into PostgreSQL. */
export async function syncToTheEnd(
  emulator: Emulator,
  store: FeedStore,
  feed: string,
): Promise<Record<keyof Omit<CommitCounts, 'stored'>, number>> {
  const total = { inserted: 0, updated: 0, filled: 0, unchanged: 0, stale: 0, quarantined: 0, conflicts: 0 };
  const stop = new AbortController();
  const client = new ServiceClient({ baseUrl: emulator.url, apiKey: emulator.apiKey });
  const context = engineContext({
    service: client,
    store: store,
    clock: systemClock,
    identity: { name: feed },
    pageSize: 200,
    observer: silentObserver({
      committed: (counts) => {
        for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += counts[name];
      },
      polled: (outcome) => outcome === 'end' && stop.abort(),
    }),
  });
  await syncFeed(context, stop.signal);
  await client.close();
  return total;
}
