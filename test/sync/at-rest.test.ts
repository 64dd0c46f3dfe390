import { expect, it } from 'vitest';
import type { FeedStore, ProcessStore } from '../../src/sync/ports/index.js';
import { syncFeed } from '../../src/sync/sync-feed.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { engineContext, processLease } from '../support/engine.js';
import { entryJson } from '../support/entries.js';
import { VirtualClock } from '../support/virtual-clock.js';

const MINUTE_MS = 60_000;
const LEASE_TTL_MS = 30_000;

/** The same store, and how often each of its methods was called. */
function counting(store: FeedStore & ProcessStore) {
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
  const process = processLease({ clock, store, ttlMs: LEASE_TTL_MS });
  const context = engineContext({ clock, service, store, process, pollIntervalMs: 1_000 });
  const following = Promise.all([syncFeed(context, stop.signal), process.keep(stop.signal)]);
  await clock.advance(MINUTE_MS + 1_000);
  calls.clear();
  service.requests.length = 0;
  await clock.advance(10 * MINUTE_MS);
  // Polled each second. The feed is read each 10 s, which finds requested passes and pending results, and the lease is renewed.
  expect(Object.fromEntries(calls)).toEqual({ commitPage: 600, readFeeds: 60, renewProcess: 60 });
  expect(service.requests).toHaveLength(600);
  // A read of the feed finds a requested pass, which begins within two seconds of it.
  const requested = model.requestBackfill(null, new Date(clock.now()));
  await clock.advance(12_000);
  expect(requested.finishedAt).not.toBeNull();
  stop.abort();
  await clock.run(following);
});
