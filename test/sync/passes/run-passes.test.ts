import { describe, expect, it } from 'vitest';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import type { FeedRequest, Pass, ReadingPace, ReadingProgress, SyncObserver } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type EngineOptions, processLease, silentObserver } from '../../support/engine.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { followFor, startFollowing } from '../../support/follow-for.js';
import { rawPage } from '../../support/pages.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** In the history: a run every half day. */
const APART_MS = DAY_MS / 2;

type Refusal = (request: FeedRequest) => string | null;

/** A feed with old runs and two of the last hour, on a service that may refuse requests (with a kind). */
function setUp({
  old = 30,
  apartMs = APART_MS,
  latencyMs = 0,
  over = {} as Partial<SyncObserver>,
  start = 'live' as 'live' | 'beginning',
} = {}) {
  const clock = new VirtualClock();
  let refuse: Refusal = () => null;
  const service = new ModelService({
    before: async (_, request) => {
      if (latencyMs > 0) await clock.pause(latencyMs);
      const kind = typeof request === 'string' ? null : refuse(request);
      if (kind !== null) throw new ModelFailure(kind, kind === 'http_503' ? 'retry' : 'hold');
    },
  });
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const deliver = (scanId: string, at: number) =>
    service.feed.push(entryJson({ scanId, deliveredAt: new Date(at).toISOString() }));
  const begun = clock.now();
  for (let n = 0; n < old; n += 1) deliver(`old-${n}`, begun - (old - n + 2) * apartMs);
  for (let n = 0; n < 2; n += 1) deliver(`recent-${n}`, begun - (30 - n) * MINUTE_MS);
  const failures: string[] = [];
  const observer = silentObserver({
    failed: (stage, error) => failures.push(`${stage} ${(error as { kind?: string }).kind}`),
    ...over,
  });
  const parts = { service, store, observer, identity: { start } };
  const startFeed = (context: EngineOptions = {}) => startFollowing(clock, { ...parts, ...context });
  const follow = (ms: number, context: EngineOptions = {}) => followFor(ms, clock, { ...parts, ...context });
  const ask = (since: Date | null, until: Date) => store.requestBackfill(since, until);
  const refuses = (refusal: Refusal) => {
    refuse = refusal;
  };
  return { clock, service, store, begun, deliver, failures, startFeed, follow, ask, refuses };
}

function feedOf(store: ModelStore) {
  const feed = store.feeds.get('default');
  if (feed === undefined) throw new Error('the feed was not started');
  return feed;
}

const cursorOf = ({ start }: FeedRequest) => ('cursor' in start ? start.cursor : null);
const requests = (service: ModelService) => service.requests.filter((request) => typeof request !== 'string');
/** Of the history's pages there are those that begin at the beginning, and those after the nth entry. */
const isOfHistory =
  (old = 30): Refusal =>
  (request) =>
    'beginning' in request.start || Number(cursorOf(request) ?? old) < old ? 'http_503' : null;

describe('a feed that begins with its new runs', () => {
  it('stores them first, then the history', async () => {
    const { store, follow } = setUp();
    await follow(10_000);
    expect([...store.rows.keys()].slice(0, 3)).toEqual(['recent-0', 'recent-1', 'old-0']);
    expect(store.rows.size).toBe(32);
  });

  it('is complete only from its own start until the history is stored', async () => {
    const { store, follow, refuses, begun } = setUp();
    refuses(isOfHistory());
    await follow(10_000);
    expect(store.rows.size).toBe(2);
    expect(await store.readStatus('default')).toMatchObject({ endReached: true, initialSyncComplete: false });
    expect(feedOf(store)).toMatchObject({ completeFrom: begun - 60 * MINUTE_MS, startSince: expect.any(Date) });
    refuses(() => null);
    await follow(10_000);
    expect(await store.readStatus('default')).toMatchObject({ initialSyncComplete: true });
    expect(feedOf(store)).toMatchObject({ completeFrom: Number.NEGATIVE_INFINITY, startSince: null });
  });

  it('does not count as recovered when it is stopped during a request', async () => {
    const recovered: string[] = [];
    const over = { recovered: (stage: string) => recovered.push(stage) };
    const { service, clock, failures, startFeed, refuses } = setUp({ latencyMs: 1_000, over });
    refuses(isOfHistory());
    const stop = startFeed();
    while (requests(service).filter(isOfHistory()).length < 3) await clock.advance(100);
    await stop();
    expect(failures).toEqual(['history http_503', 'history http_503']);
    expect(recovered).not.toContain('history');
  });

  it('does not end the history with a page that a cache has kept since before the feed had its cursor', async () => {
    const { service, store, follow } = setUp();
    const readPage = service.readPage.bind(service);
    let ageMs = DAY_MS;
    service.readPage = async (request, signal) => {
      const page = await readPage(request, signal);
      return cursorOf(request) === '32'
        ? { ...page, ageMs, cache: { evidence: `Age: ${ageMs / 1000}`, name: null } }
        : page;
    };
    await follow(MINUTE_MS);
    expect(store.rows.size).toBe(32);
    expect(store.latestPass('history')).toMatchObject({ cursor: '32', finishedAt: null });
    ageMs = 10_000; // the feed has had its cursor for longer
    await follow(MINUTE_MS);
    expect(store.latestPass('history')).toMatchObject({ finishedAt: expect.any(Number) });
  });

  it('resumes the history at the position of the last process', async () => {
    const { clock, service, store, follow, refuses } = setUp();
    refuses((request) => (cursorOf(request) === '20' ? 'http_503' : null));
    await follow(10_000);
    expect(store.rows.size).toBe(22);
    service.requests.length = 0;
    refuses(() => null);
    await follow(10_000, { process: processLease({ clock, store, holder: 'another-process' }), identity: {} });
    expect(store.rows.size).toBe(32);
    expect(requests(service).map(cursorOf)).toContain('20');
    expect(requests(service).map(cursorOf)).not.toContain('10');
  });

  it('reports progress of the history within a minute', async () => {
    const recovered: string[] = [];
    const { clock, service, store, refuses, startFeed } = setUp({
      ...{ old: 3000, latencyMs: 1_000 },
      over: { recovered: (stage) => recovered.push(stage) },
    });
    refuses((request) => (cursorOf(request) === '20' ? 'http_503' : null));
    const stop = startFeed();
    await clock.advance(30_000);
    expect(requests(service).map(cursorOf)).toContain('20');
    refuses(() => null);
    recovered.length = 0;
    await clock.advance(MINUTE_MS);
    expect(await store.readStatus('default')).toMatchObject({ initialSyncComplete: false });
    expect(recovered).toContain('history');
    await stop();
  });

  it('has at most ten pages of the history in memory', async () => {
    const mostReserved = async (maxHeldPages: number) => {
      const { clock, store, follow } = setUp({ old: 300, apartMs: MINUTE_MS });
      const budget = createMemoryBudget(64 * 1024 * 1024);
      let most = 0;
      const commitPass = store.commitPass.bind(store);
      store.commitPass = async (...given) => {
        await clock.pause(100);
        most = Math.max(most, budget.reservedBytes);
        return commitPass(...given);
      };
      await follow(20_000, { budget, maxHeldPages });
      expect(store.rows.size).toBe(302);
      return most;
    };
    const ten = await mostReserved(10);
    expect(await mostReserved(15)).toBe(ten);
    expect(await mostReserved(9)).toBeLessThan(ten);
  });

  it('starts the history only once', async () => {
    const { service, store, follow } = setUp();
    await follow(10_000);
    service.requests.length = 0;
    await follow(10_000);
    expect(requests(service).map(cursorOf)).not.toContain('10');
    expect(feedOf(store).passes).toHaveLength(1);
  });

  it('does not move its own cursor when the history is read', async () => {
    const { store, follow, refuses } = setUp();
    refuses((request) => (cursorOf(request) === '20' ? 'http_503' : null));
    await follow(10_000);
    expect(feedOf(store).cursor).toBe('32');
  });

  it('reads new runs first, however many there are', async () => {
    // Reading them takes longer than it takes to find that there is a history.
    const { clock, store, begun, deliver, startFeed } = setUp({ old: 500, latencyMs: 100 });
    for (let n = 0; n < 1000; n += 1) deliver(`new-${n}`, begun - MINUTE_MS);
    const stop = startFeed();
    await clock.advance(60_000);
    await stop();
    const scans = [...store.rows.keys()];
    expect(scans.findIndex((scanId) => scanId.startsWith('old'))).toBeGreaterThanOrEqual(1002);
    expect(scans).toHaveLength(1502);
  });

  it('falls back to a day before what it has read when the history’s cursor is rejected', async () => {
    const { service, store, begun, failures, follow, refuses } = setUp();
    let lost = false;
    refuses((request) => {
      lost ||= cursorOf(request) === '20';
      return cursorOf(request) === '20' || (lost && cursorOf(request) === '10') ? 'http_400' : null;
    });
    await follow(30_000);
    expect(store.rows.size).toBe(32);
    expect(failures).toEqual(['history http_400']);
    // The 20th entry has been read, and that is 12 half days before the start.
    expect(requests(service)).toContainEqual(
      expect.objectContaining({ start: { since: new Date(begun - 13 * APART_MS - DAY_MS) } }),
    );
  });

  it('tries a cursor again that was rejected once', async () => {
    const { service, store, failures, follow, refuses } = setUp({ latencyMs: 50 });
    const readPage = service.readPage.bind(service);
    // From a day before, the filters hide everything up to that cursor.
    service.readPage = async (request, signal) => {
      const page = await readPage(request, signal);
      const hides = !once && 'since' in request.start && request.filters.environment === 'prod';
      return hides ? rawPage(pageJson([], '20')) : page;
    };
    let once = true;
    refuses((request) => {
      if (cursorOf(request) !== '20' || !once) return null;
      once = false;
      return 'http_400';
    });
    await follow(30_000);
    expect(store.rows.size).toBe(32);
    expect(failures).toEqual(['history http_400']);
    expect(await store.readStatus('default')).toMatchObject({ initialSyncComplete: true });
  });

  it('holds the history when the key belongs to another organization', async () => {
    const { service, store, failures, follow, refuses } = setUp();
    let swapped = false;
    refuses((request) => {
      if (cursorOf(request) === '20' && !swapped) {
        swapped = true;
        service.feed.splice(0, 30, ...service.feed.slice(0, 30).map((entry) => entry.replace('"old-', '"alien-')));
      }
      return cursorOf(request) === '20' && swapped ? 'http_400' : null;
    });
    await follow(120_000);
    expect(failures.slice(0, 2)).toEqual(['history http_400', 'history another_organization']);
    expect([...store.rows.keys()].filter((scanId) => scanId.startsWith('alien'))).toEqual([]);
  });

  it('holds, instead of quarantining everything, when most entries of the history are unusable', async () => {
    const { service, store, failures, follow } = setUp({ old: 0 });
    const bad = (n: number) => `{"scanId":"bad-${n}","deliveredAt":"2025-01-01T00:00:00Z"}`;
    service.feed.unshift(...Array.from({ length: 200 }, (_, n) => bad(n)));
    await follow(120_000, { pageSize: 200 });
    expect(failures).toContain('history mostly_bad');
    expect(store.quarantine.size).toBe(0);
  });

  it('pauses when the history’s cursor is stuck', async () => {
    const { service, clock, follow } = setUp();
    const readPage = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      const page = await readPage(request, signal);
      return cursorOf(request) === '10' ? { ...page, nextCursor: '10' } : page;
    };
    await follow(60_000);
    const stuck = requests(service).filter((request) => cursorOf(request) === '10');
    expect(stuck.length).toBeLessThanOrEqual(clock.monotonic() / 5_000 + 2);
    expect(stuck.length).toBeGreaterThan(3);
  });

  it('runs recent passes before the history is stored, and full passes only afterwards', async () => {
    const { store, follow, refuses, clock } = setUp();
    refuses(isOfHistory());
    const reconcile = { intervalMs: MINUTE_MS, windowMs: 2 * MINUTE_MS, fullIntervalMs: DAY_MS };
    await follow(5 * MINUTE_MS, { reconcile });
    expect(store.latestPass('recent')).toMatchObject({ finishedAt: expect.any(Number) });
    expect(store.latestPass('full')).toBeUndefined();
    refuses(() => null);
    await follow(3 * MINUTE_MS, { reconcile });
    expect(await store.readLastPass('default', 'full')).toMatchObject({ endedMsAgo: expect.any(Number) });
    await clock.advance(1);
  });
});

describe('a requested range', () => {
  it('is read again while the feed continues, and missing runs are stored', async () => {
    const finished: Pass[] = [];
    const { clock, service, store, begun, ask, deliver, startFeed } = setUp({
      start: 'beginning',
      over: { passFinished: (pass) => finished.push(pass) },
    });
    const stop = startFeed();
    await clock.advance(10_000);
    store.rows.delete('old-10');
    store.rows.delete('old-29');
    service.requests.length = 0;
    ask(new Date(begun - 25 * APART_MS), new Date(begun - 15 * APART_MS));
    deliver('new', clock.now());
    await clock.advance(10_000);
    await stop();
    expect(store.rows.has('old-10')).toBe(true);
    expect(store.rows.has('new')).toBe(true);
    expect(requests(service)).toContainEqual(
      expect.objectContaining({ start: { since: new Date(begun - 25 * APART_MS) } }),
    );
    expect(finished).toMatchObject([{ kind: 'backfill', stored: 1 }]);
    expect(feedOf(store).passes).toMatchObject([{ stored: 1, finishedAt: expect.any(Number) }]);
    // The backfill ends before that run.
    expect(store.rows.has('old-29')).toBe(false);
  });

  it('begins within seconds, however long the lease lasts', async () => {
    const { clock, store, begun, ask, startFeed } = setUp({ start: 'beginning' });
    const stop = startFeed({ process: processLease({ clock, store, ttlMs: 60 * MINUTE_MS }) });
    await clock.advance(30 * MINUTE_MS);
    const pass = ask(null, new Date(begun));
    await clock.advance(15_000);
    await stop();
    expect(pass.finishedAt).not.toBeNull();
  });

  it('quarantines bad entries of a page that is otherwise beyond its end', async () => {
    const { clock, service, store, begun, ask, startFeed } = setUp({ start: 'beginning' });
    const stop = startFeed();
    await clock.advance(10_000);
    const at = begun - 20.5 * APART_MS;
    const place = service.feed.findIndex((entry) => entry.includes('"old-12"'));
    service.feed.splice(place, 0, `{"scanId":"bad","deliveredAt":"${new Date(at).toISOString()}"}`);
    ask(new Date(at), new Date(at + 1));
    await clock.advance(10_000);
    await stop();
    expect(store.quarantine.size).toBe(1);
  });

  it('is read before the history', async () => {
    const { store, follow, refuses, ask, begun } = setUp({ old: 300 });
    refuses(isOfHistory(300));
    await follow(5_000);
    refuses(() => null);
    ask(new Date(begun - 20 * APART_MS), new Date(begun - 10 * APART_MS));
    await follow(10_000);
    expect([...store.rows.keys()][2]).toBe('old-282');
  });

  it('does not wait for a history that waits for the feed', async () => {
    const { clock, store, begun, deliver, ask, startFeed } = setUp({ old: 300, latencyMs: 1_000 });
    for (let n = 0; n < 600; n += 1) deliver(`new-${n}`, begun - MINUTE_MS);
    const stop = startFeed();
    await clock.advance(20_000); // the feed reads on for a minute
    ask(new Date(begun - 20 * APART_MS), new Date(begun - 10 * APART_MS));
    await clock.advance(10_000);
    expect([...store.rows.keys()].filter((scanId) => scanId.startsWith('old'))[0]).toBe('old-282');
    expect((await store.readStatus('default')).endReached).toBe(false);
    await clock.advance(600_000);
    await stop();
    expect(store.rows.size).toBe(902);
    expect(feedOf(store).passes).toMatchObject([
      { kind: 'history', stored: 282, finishedAt: expect.any(Number) },
      { kind: 'backfill', stored: 18, finishedAt: expect.any(Number) },
    ]);
  });

  it('does not wait for a slow page of the history', async () => {
    const { clock, service, store, begun, ask, startFeed } = setUp();
    const readPage = service.readPage.bind(service);
    let slow = true;
    service.readPage = async (request, signal) => {
      if (slow && 'beginning' in request.start) await clock.sleep(30 * MINUTE_MS, signal);
      signal.throwIfAborted();
      return readPage(request, signal);
    };
    const stop = startFeed();
    await clock.advance(7_000);
    ask(new Date(begun - 20 * APART_MS), new Date(begun - 10 * APART_MS));
    await clock.advance(10_000);
    expect([...store.rows.keys()][2]).toBe('old-12');
    slow = false;
    await clock.advance(30 * MINUTE_MS);
    await stop();
    expect(store.rows.size).toBe(32);
  });

  it('extends the complete range when it reaches its start', async () => {
    const { store, follow, ask, begun, refuses } = setUp();
    refuses(isOfHistory());
    await follow(5_000);
    const apart = new Date(begun - 10 * APART_MS);
    ask(new Date(begun - 20 * APART_MS), apart);
    ask(apart, new Date(begun));
    refuses((request) => ('beginning' in request.start ? 'http_503' : null));
    await follow(20_000);
    expect(feedOf(store).completeFrom).toBe(apart.getTime());
  });

  it('does not extend the complete range while the feed is read by time, which may leave out runs', async () => {
    const { clock, service, store, begun, deliver, startFeed, ask } = setUp();
    const submitted = (entry: string) =>
      entry.includes('"late"') ? begun - DAY_MS : Date.parse(JSON.parse(entry).deliveredAt);
    service.readPage = async ({ start, limit }) => {
      const from = 'cursor' in start ? Number(start.cursor) : 0;
      const since = 'since' in start ? start.since.getTime() : 0;
      const listed = service.feed.slice(from).filter((entry) => submitted(entry) >= since);
      const page = listed.slice(0, limit);
      const nextCursor = listed.length > limit ? String(from + limit) : null;
      return { ...rawPage(pageJson(page)), nextCursor };
    };
    const stop = startFeed({ identity: { start: new Date(begun - 60 * MINUTE_MS) } });
    await clock.advance(10_000);
    ask(null, new Date(clock.now()));
    await clock.advance(20_000);
    expect(store.latestPass('backfill')?.finishedAt).not.toBeNull();
    expect(store.rows.size).toBe(32);
    deliver('late', clock.now());
    await clock.advance(MINUTE_MS);
    await stop();
    expect(store.rows.has('late')).toBe(false);
    expect(feedOf(store).completeFrom).toBe(begun - 60 * MINUTE_MS);
  });

  it('keeps its position when it is stopped', async () => {
    const { clock, store, startFeed, ask, begun, refuses } = setUp({ start: 'beginning' });
    const stop = startFeed();
    await clock.advance(5_000);
    let stopped = false;
    refuses((request) => {
      if (cursorOf(request) === '20' && !stopped) {
        stopped = true;
        Object.assign(store.latestPass('backfill') ?? {}, { finishedAt: clock.now() });
      }
      return null;
    });
    ask(null, new Date(begun));
    await clock.advance(30_000);
    await stop();
    expect(Number(store.latestPass('backfill')?.cursor)).toBeLessThan(30);
  });
});

describe('progress', () => {
  it('of a first start has the pace of the feed and the estimated remaining time', async () => {
    const calls: { at: number; progress: ReadingProgress | null }[] = [];
    const noted: (ReadingPace | null)[] = [];
    const over: Partial<SyncObserver> = {
      reading: (_, progress) => calls.push({ at: clock.monotonic(), progress }),
    };
    const { clock, store, service, follow } = setUp({ old: 3_000, start: 'beginning', over });
    store.storePace = async (_, pace) => void noted.push(pace);
    const readPage = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      await clock.pause(100);
      return readPage(request, signal);
    };
    await follow(60_000);
    const end = calls.find(({ progress }) => progress === null)?.at ?? Number.NaN;
    expect(end).toBeGreaterThan(29_000);
    for (const { at, progress } of calls.filter((one) => one.at > 2_000 && one.at < end - 2_000)) {
      expect(progress?.pace?.entriesPerSecond).toBeCloseTo(100, -1);
      expect(at + 1_000 * (progress?.pace?.secondsLeft ?? Number.NaN)).toBeCloseTo(end, -4);
    }
    // Every ten seconds, and at the end.
    expect(noted).toHaveLength(4);
    expect(noted.at(-1)).toBeNull();
  });
});
