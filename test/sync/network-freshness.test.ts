import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { createLookup } from '../../src/core/host-lookup.js';
import { createFeedState } from '../../src/observability/feed-state.js';
import { ServiceClient } from '../../src/service/client.js';
import { createDispatcher } from '../../src/service/http/dispatcher.js';
import type { FeedService } from '../../src/sync/ports/index.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from '../support/engine.js';
import { entryJson, pageJson } from '../support/entries.js';
import { startFollowing } from '../support/follow-for.js';
import { startSlowForwarder } from '../support/slow-handshake.js';
import { systemLookups } from '../support/system-lookups.js';
import { nextTurn, VirtualClock } from '../support/virtual-clock.js';

const SECOND = 1_000;
const POLL_MS = 5 * SECOND;
const LOCAL: LookupAddress = { address: '127.0.0.1', family: 4 };

/** Sends a page. `pause` lets virtual time pass. */
type Send = (page: string, response: ServerResponse, pause: (ms: number) => Promise<void>) => unknown;

/** Each poll needs a connection, so it needs a lookup and a handshake too. */
const sendAndClose: Send = (page, response) => response.setHeader('connection', 'close').end(page);

/** A clock that stands still while `busy` names a host: its requests wait for a real socket. */
function createNetworkClock() {
  const busy = new Set<string>();
  const clock = new VirtualClock(1, async () => {
    do await nextTurn();
    while (busy.size > 0);
  });
  return { clock, busy };
}

type NetworkClock = ReturnType<typeof createNetworkClock>;

interface Listed {
  readonly scanId: string;
  readonly deliveredAt: number;
}

/** The list of a service, which is the same at every host. */
function createList({ clock, busy }: NetworkClock, send: Send) {
  const listed: Listed[] = [];
  const pageFrom = (entries: readonly Listed[], from: number) => {
    const page = entries.slice(from, from + 10).map(({ scanId, deliveredAt }) => {
      return entryJson({ scanId, deliveredAt: new Date(deliveredAt).toISOString() });
    });
    return pageJson(page, `${from + page.length}`);
  };
  return {
    listed,
    add: () => listed.push({ scanId: `scan-${listed.length}`, deliveredAt: clock.now() }),
    /** Answers with the first `count` entries. */
    respond:
      (count = Number.POSITIVE_INFINITY): RequestListener =>
      (request, response) => {
        const [host = ''] = (request.headers.host ?? '').split(':');
        const pause = async (ms: number) => {
          busy.delete(host);
          await clock.pause(ms);
          if (!response.destroyed) busy.add(host);
        };
        const from = Number(new URL(request.url ?? '', 'http://any.test').searchParams.get('cursor'));
        response.sendDate = false;
        response.setHeader('content-type', 'application/json');
        send(pageFrom(listed.slice(0, count), from), response, pause);
      },
  };
}

/** Looks up names as a process that has just started. */
function createOwnLookup({ clock, busy }: NetworkClock, query: Parameters<typeof createLookup>[0]): LookupFunction {
  const lookupHost = createLookup(query, clock);
  return (host, options, callback) => {
    busy.delete(host);
    lookupHost(host, options, (...answer) => {
      busy.add(host);
      callback(...answer);
    });
  };
}

/** The service at a host. Its requests stop the clock. */
function openService({ clock, busy }: NetworkClock, host: string, port: number, dispatcher: Dispatcher): FeedService {
  const baseUrl = `http://${host}:${port}/v1`;
  const client = new ServiceClient({ baseUrl, apiKey: 'key', allowHttp: true, dispatcher, clock });
  return {
    readPage: (request, signal) => {
      busy.add(host);
      return client.readPage(request, signal).finally(() => busy.delete(host));
    },
    readRun: (...run) => client.readRun(...run),
  };
}

/** A feed that is known by the host of its service. */
function createFeed({ clock: { now, monotonic } }: NetworkClock, host: string) {
  return {
    host,
    store: new ModelStore(now, { monotonic }),
    state: createFeedState({ monotonic, pollIntervalMs: POLL_MS, requestTimeoutMs: 30 * SECOND }),
    failures: [] as unknown[],
  };
}

type Feed = ReturnType<typeof createFeed>;

/** Fails if a feed claims to have what it has not stored, or does not report how long that has been listed. */
function checkClaims({ store, state }: Feed, listed: readonly Listed[], now: number, hiddenForMs: number): void {
  const missing = listed.find(({ scanId }) => !store.rows.has(scanId));
  if (missing === undefined || now - missing.deliveredAt <= hiddenForMs) return;
  expect(state.freshness()?.dataCompleteAsOf?.getTime() ?? 0).toBeLessThanOrEqual(missing.deliveredAt);
  const lag = state.lagSeconds() ?? Number.POSITIVE_INFINITY;
  expect(lag).toBeGreaterThanOrEqual((now - missing.deliveredAt) / SECOND);
}

interface Options {
  /** Of all hosts. */
  readonly addresses?: readonly LookupAddress[];
  /** By default `sendAndClose`. */
  readonly send?: Send;
}

async function setUp({ addresses = [LOCAL], send = sendAndClose }: Options = {}) {
  const network = createNetworkClock();
  const { clock } = network;
  const { query, silent } = systemLookups(clock, addresses);
  const list = createList(network, send);
  const server = await listen(createServer(list.respond()), 0, LOCAL.address);
  const { port } = server.address() as AddressInfo;
  /** Starts a process, which knows no addresses. Returns a function that stops it. */
  const start = (feeds: readonly Feed[], servicePort = port) => {
    const dispatcher = createDispatcher({ lookup: createOwnLookup(network, query), clock });
    const stops = feeds.map(({ host, store, state, failures }) => {
      const failed = (_stage: string, error: unknown) => failures.push(error);
      const observer = silentObserver({ freshness: state.setFreshness, status: state.setStatus, failed });
      const service = openService(network, host, servicePort, dispatcher);
      return startFollowing(clock, { service, store, observer, pollIntervalMs: POLL_MS });
    });
    return async () => {
      for (const stop of stops) await stop();
      await dispatcher.destroy();
    };
  };
  /** Lets time pass, and checks each second what the feeds claim. Runs may be missing unnoticed for `hiddenForMs`. */
  const advance = async (ms: number, feeds: readonly Feed[], hiddenForMs = 0) => {
    for (let passedMs = 0; passedMs < ms; passedMs += SECOND) {
      await clock.advance(SECOND);
      for (const feed of feeds) checkClaims(feed, list.listed, clock.now(), hiddenForMs);
    }
  };
  return { silent, list, server, port, start, advance, createFeed: (host: string) => createFeed(network, host) };
}

/** Listens until the test ends. */
async function listen(server: Server, port: number, address: string): Promise<Server> {
  await once(server.listen(port, address), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

it('keeps the pace of one feed and reports the lag of the other when its DNS servers are silent', async () => {
  const { silent, list, createFeed, start, advance } = await setUp();
  const feeds = [createFeed('healthy.test'), createFeed('dead.test')] as const;
  const [healthy, dead] = feeds;
  const stop = start(feeds);
  list.add();
  await advance(POLL_MS + SECOND, feeds);
  await stop();
  expect(feeds.map(({ store }) => store.rows.size)).toEqual([1, 1]);
  silent.add('dead.test');
  const stopAgain = start([dead, healthy]);
  for (let n = 0; n < 40; n += 1) {
    list.add();
    await advance(POLL_MS + SECOND, feeds);
    expect(feeds.map(({ store }) => store.rows.size)).toEqual([list.listed.length, 1]);
    expect(healthy.state.lagSeconds()).toBeLessThan(7);
  }
  silent.clear();
  await advance(180 * SECOND, feeds);
  expect(dead.store.rows.size).toBe(list.listed.length);
  expect(dead.state.lagSeconds()).toBeLessThan(7);
  await stopAgain();
});

it('reports the lag until a name with two addresses answers, whose handshake takes a second', async () => {
  const addresses: LookupAddress[] = [];
  const { list, port, createFeed, start, advance } = await setUp({ addresses });
  const forwarder = await startSlowForwarder(port);
  onTestFinished(forwarder.stop);
  addresses.push(...forwarder.addresses);
  const feed = createFeed('two-addresses.test');
  const stop = start([feed], forwarder.port);
  for (const stored of [1, 2]) {
    list.add();
    await forwarder.slowDown();
    await advance(POLL_MS + SECOND, [feed]);
    expect(feed.store.rows.size).toBe(stored);
    expect(feed.state.lagSeconds()).toBeLessThan(7);
  }
  expect(feed.failures).toEqual([]);
  await stop();
});

it.each([
  ['is gone', 0],
  ['repeats what it listed', 60 * SECOND + POLL_MS],
])('reports the lag when a name moves and its former server %s', async (_, hiddenForMs) => {
  const addresses = [LOCAL];
  const keepOpen: Send = (page, response) => response.end(page);
  const { list, server, port, createFeed, start, advance } = await setUp({ addresses, send: keepOpen });
  const feed = createFeed('moved.test');
  const stop = start([feed]);
  list.add();
  await advance(POLL_MS + SECOND, [feed]);
  expect(feed.store.rows.size).toBe(1);

  await listen(createServer(list.respond()), port, '127.0.0.2');
  addresses.splice(0, 1, { address: '127.0.0.2', family: 4 });
  server.removeAllListeners('request').on('request', list.respond(1));
  if (hiddenForMs === 0) {
    server.close();
    server.closeAllConnections();
  }
  for (let n = 0; n < 15; n += 1) {
    list.add();
    await advance(POLL_MS + SECOND, [feed], hiddenForMs);
    if (hiddenForMs === 0) expect(feed.store.rows.size).toBe(list.listed.length);
  }
  expect(feed.store.rows.size).toBe(list.listed.length);
  expect(feed.state.lagSeconds()).toBeLessThan(7);
  await stop();
});

it('reports the lag while pages in chunks take longer than the pause between two polls', async () => {
  const inChunks: Send = async (page, response, pause) => {
    for (let sent = 0; sent < page.length; sent += 400) {
      response.write(page.slice(sent, sent + 400));
      await pause(1.5 * SECOND);
    }
    response.end();
  };
  const { list, createFeed, start, advance } = await setUp({ send: inChunks });
  const feed = createFeed('chunks.test');
  const stop = start([feed]);
  let mostMissing = 0;
  for (let n = 0; n < 40; n += 1) {
    list.add();
    await advance((1 + (n % 11)) * SECOND, [feed]);
    mostMissing = Math.max(mostMissing, list.listed.length - feed.store.rows.size);
  }
  expect(mostMissing).toBeGreaterThan(2);
  await advance(240 * SECOND, [feed]);
  expect(feed.store.rows.size).toBe(list.listed.length);
  expect(feed.state.lagSeconds()).toBeLessThan(10);
  await stop();
});
