import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLookup } from '../../src/core/host-lookup.js';
import { createFeedState } from '../../src/observability/feed-state.js';
import { ServiceClient } from '../../src/service/client.js';
import { createDispatcher } from '../../src/service/http/dispatcher.js';
import type { FeedService } from '../../src/sync/ports/index.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from '../support/engine.js';
import { entryJson, pageJson } from '../support/entries.js';
import { startFollowing } from '../support/follow-for.js';
import { systemLookups } from '../support/system-lookups.js';
import { nextTurn, VirtualClock } from '../support/virtual-clock.js';

const POLL_MS = 5_000;

/** Entries that the service lists for every organization. */
let listed: string[];
const server = createServer((request, response) => {
  const from = Number(new URL(request.url ?? '', 'http://any.test').searchParams.get('cursor'));
  response.sendDate = false;
  // Each poll needs a connection, so it needs a lookup too.
  response.setHeader('content-type', 'application/json').setHeader('connection', 'close');
  response.end(pageJson(listed.slice(from, from + 10), `${Math.min(from + 10, listed.length)}`));
});

beforeEach(async () => {
  listed = [];
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(() => server.close());

/** Feeds of services with host names of their own, which a process follows on a virtual clock. */
function setUp() {
  /** Hosts whose requests wait for the real server; virtual time stops meanwhile. */
  const busy = new Set<string>();
  const clock = new VirtualClock(1, async () => {
    do await nextTurn();
    while (busy.size > 0);
  });
  const { query, silent } = systemLookups(clock, { address: '127.0.0.1', family: 4 });
  const { monotonic } = clock;
  const feed = (host: string) => ({
    host,
    store: new ModelStore(clock.now, { monotonic }),
    state: createFeedState({ monotonic, pollIntervalMs: POLL_MS, requestTimeoutMs: 30_000 }),
  });
  const openDispatcher = () => {
    const lookupHost = createLookup(query, clock);
    const lookup: LookupFunction = (host, options, callback) => {
      busy.delete(host);
      lookupHost(host, options, (...answer) => {
        busy.add(host);
        callback(...answer);
      });
    };
    return createDispatcher({ lookup, clock });
  };
  const openService = (host: string, dispatcher: ReturnType<typeof createDispatcher>): FeedService => {
    const baseUrl = `http://${host}:${(server.address() as AddressInfo).port}/v1`;
    const client = new ServiceClient({ baseUrl, apiKey: 'key', allowHttp: true, dispatcher, clock });
    const readPage: FeedService['readPage'] = (request, signal) => {
      busy.add(host);
      return client.readPage(request, signal).finally(() => busy.delete(host));
    };
    return { readPage, readRun: (...run) => client.readRun(...run) };
  };
  /** Starts a process, which knows no addresses. Returns a function that stops it. */
  const start = (feeds: readonly ReturnType<typeof feed>[]) => {
    const dispatcher = openDispatcher();
    const stops = feeds.map(({ host, store, state }) => {
      const observer = silentObserver({ freshness: state.setFreshness, status: state.setStatus });
      const service = openService(host, dispatcher);
      return startFollowing(clock, { service, store, observer, pollIntervalMs: POLL_MS });
    });
    return async () => {
      for (const stop of stops) await stop();
      await dispatcher.destroy();
    };
  };
  return { clock, silent, feed, start };
}

it('keeps the pace of one feed and reports the lag of the other when its DNS servers are silent', async () => {
  const { clock, silent, feed, start } = setUp();
  const [healthy, dead] = [feed('healthy.test'), feed('dead.test')];
  const deliver = async () => {
    listed.push(entryJson({ scanId: `scan-${listed.length}`, deliveredAt: new Date(clock.now()).toISOString() }));
    await clock.advance(POLL_MS + 1_000);
  };
  const stop = start([healthy, dead]);
  await deliver();
  await stop();
  expect([healthy.store.rows.size, dead.store.rows.size]).toEqual([1, 1]);
  silent.add('dead.test');
  const stopAgain = start([dead, healthy]);
  const since = clock.monotonic();
  for (let n = 0; n < 40; n += 1) {
    await deliver();
    expect([healthy.store.rows.size, dead.store.rows.size]).toEqual([listed.length, 1]);
    expect(healthy.state.lagSeconds()).toBeLessThan(7);
    expect(dead.state.lagSeconds()).toBeGreaterThanOrEqual((clock.monotonic() - since) / 1_000);
  }
  silent.clear();
  await clock.advance(180_000);
  expect(dead.store.rows.size).toBe(listed.length);
  expect(dead.state.lagSeconds()).toBeLessThan(7);
  await stopAgain();
});
