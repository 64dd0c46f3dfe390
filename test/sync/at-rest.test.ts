import { expect, it } from 'vitest';
import type { FeedStore } from '../../src/sync/ports/index.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { engineContext } from '../support/engine.js';
import { entryJson } from '../support/entries.js';
import { VirtualClock } from '../support/virtual-clock.js';

const MINUTE_MS = 60_000;
const LEASE_TTL_MS = 10_000;

/** The same store, and how often each of its methods was called. */
function counting(store: FeedStore) {
  const calls = new Map<string, number>();
  const counted = new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => {
        calls.set(String(name), (calls.get(String(name)) ?? 0) + 1);
        return Reflect.apply(method, target, args);
      };
    },
  });
  return { store: counted, calls };
}

// A sidecar is at rest for most of its life: what it asks then is what it costs (docs/performance.md).
it('sends only the necessary requests and statements when the feed is at its end', async () => {
  const clock = new VirtualClock();
  const service = new ModelService();
  const model = new ModelStore(clock.monotonic);
  const { store, calls } = counting(model);
  service.feed.push(entryJson());
  const stop = new AbortController();
  const following = syncFeed(
    engineContext({ clock, service, store, pollIntervalMs: 1_000, leaseTtlMs: LEASE_TTL_MS }),
    stop.signal,
  );
  await clock.advance(MINUTE_MS + 1_000);
  calls.clear();
  service.requests.length = 0;
  await clock.advance(10 * MINUTE_MS);
  // Polled each second, which extends the lease; it is renewed each 10 s, which also finds requested passes and pending results.
  expect(Object.fromEntries(calls)).toEqual({ commitPage: 600, renewLeases: 60 });
  expect(service.requests).toHaveLength(600);
  // The renewal of the lease finds a requested pass, which begins within two seconds of it.
  const requested = model.requestBackfill(null, new Date(clock.now()));
  await clock.advance(LEASE_TTL_MS + 2_000);
  expect(requested.finishedAt).not.toBeNull();
  stop.abort();
  await clock.run(following);
});
