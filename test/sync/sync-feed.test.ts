import { describe, expect, it } from 'vitest';
import { UNFILTERED } from '../../src/core/feed-filters.js';
import type { FeedRequest, PollOutcome, SyncObserver } from '../../src/sync/ports/index.js';
import { StoreFailure } from '../simulation/model-failure.js';
import { ModelFailure, ModelService, type ModelServiceOptions } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { type EngineOptions, silentObserver } from '../support/engine.js';
import { entryJson, type Fields } from '../support/entries.js';
import { followFor, startFollowing } from '../support/follow-for.js';
import { rawPage } from '../support/pages.js';
import { cases } from '../support/thorough.js';
import { VirtualClock } from '../support/virtual-clock.js';

function setUp(options: { service?: ModelServiceOptions; observer?: Partial<SyncObserver> } = {}) {
  const clock = new VirtualClock();
  const service = new ModelService(options.service);
  const store = new ModelStore(clock.monotonic);
  const parts = { service, store, observer: silentObserver(options.observer) };
  const start = (over: EngineOptions = {}) => startFollowing(clock, { ...parts, ...over });
  const follow = (ms: number, over: EngineOptions = {}) => followFor(ms, clock, { ...parts, ...over });
  return { clock, service, store, start, follow };
}

const runs = (count: number, over: (n: number) => Fields = () => ({})) =>
  Array.from({ length: count }, (_, n) => entryJson({ scanId: `scan-${n}`, ...over(n) }));

const cursors = (service: ModelService) =>
  service.requests.flatMap((request) => (typeof request === 'string' ? [] : [startOf(request)]));
const startOf = ({ start }: FeedRequest) => ('cursor' in start ? start.cursor : 'since' in start ? start.since : null);

describe('syncFeed', () => {
  it('reads every page to the end, then polls at the interval', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(...runs(25));
    await follow(12_000);
    expect(store.rows.size).toBe(25);
    expect(cursors(service).filter((cursor) => cursor === '25').length).toBeLessThanOrEqual(2 * 4);
    expect(store.feeds.get('default')?.cursor).toBe('25');
    expect(store.feeds.get('default')?.endReachedAt).not.toBeNull();
  });

  it.each([
    ['counts the interval from the poll that saw the end, however long its commit takes', 2_000, 5_000],
    ['rests for half the interval where a commit takes longer than that', 4_000, 6_500],
  ])('%s', async (_, commitMs, gapMs) => {
    const polled = new Set<number>();
    const { clock, store, follow } = setUp({
      service: { before: async () => void polled.add(clock.monotonic()) },
    });
    const commitPage = store.commitPage.bind(store);
    store.commitPage = async (commit) => {
      await clock.pause(commitMs);
      return commitPage(commit);
    };
    await follow(60_000, { pollIntervalMs: 5_000 });
    const polls = [...polled];
    const gaps = polls.slice(1).map((at, n) => at - (polls[n] ?? 0));
    expect(gaps.length).toBeGreaterThan(5);
    expect(new Set(gaps)).toEqual(new Set([gapMs]));
  });

  it('continues from the stored cursor after a restart, and finds the new runs', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(...runs(12));
    await follow(1_000);
    service.requests.length = 0;
    service.feed.push(entryJson({ scanId: 'late' }));
    await follow(1_000);
    expect(cursors(service)[0]).toBe('12');
    expect(store.rows.has('late')).toBe(true);
  });

  it('starts a feed without a cursor where it was first started, whatever the settings are now', async () => {
    const { service, follow, clock } = setUp({
      service: { before: async () => Promise.reject(new ModelFailure('http_503')) },
    });
    const start = new Date(clock.now());
    await follow(1_000, { identity: { start } });
    await follow(1_000, { identity: { start: 'beginning' } });
    expect(new Set(cursors(service))).toEqual(new Set([start]));
  });

  it('is not held when a rewind reads many known bad entries again', async () => {
    const failures: unknown[] = [];
    const { service, store, follow } = setUp({ observer: { failed: (_stage, error) => failures.push(error) } });
    for (let n = 0; n < 120; n += 10) {
      service.feed.push(...runs(10, (m) => ({ scanId: `bad-${n + m}`, status: 'lost' })));
      await follow(10_000, { pageSize: 10 });
    }
    store.rewind('default', null);
    service.feed.push(entryJson({ scanId: 'good' }));
    await follow(10_000, { pageSize: 200 });
    expect(failures).toEqual([]);
    expect(store.rows.has('good')).toBe(true);
    expect(store.quarantine.size).toBe(120);
  });

  it('quarantines an unusable entry and stores the others', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(...runs(3), '{"scanId":"bad"}', 'null', entryJson({ scanId: 'after' }));
    await follow(1_000);
    expect([...store.rows.keys()]).toEqual(['scan-0', 'scan-1', 'scan-2', 'after']);
    expect([...store.quarantine.values()].map((entry) => Buffer.from(entry.payload).toString())).toEqual([
      '{"scanId":"bad"}',
      'null',
    ]);
  });
});

describe('truncated results', () => {
  it('are loaded before their page is committed', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(entryJson({ data: undefined, resultTruncated: true }));
    service.runs.set('scan-1', entryJson({ data: { voll: true }, rawOcrResult: { pages: [] } }));
    await follow(1_000);
    expect(store.rows.get('scan-1')).toMatchObject({ pending: null, data: '{"voll":true}' });
  });

  it.each([
    ['not_found', undefined],
    ['processing', { status: 'processing', data: null }],
    ['still_truncated', { data: undefined, resultTruncated: true }],
    ['still_truncated', { data: null }],
    ['older_revision', { revision: 1 }],
    ['newer_revision', { revision: 3, partnerTestMode: undefined }],
    ['newer_revision', { revision: 3, partnerTestMode: null }],
    ['invalid_result', { scanId: 'another' }],
    ['invalid_result', { data: 'text' }],
    ['invalid_result', { status: 'failed' }],
  ] as const)('stay pending (%s) without holding the feed up', async (reason, answer) => {
    const { service, store, follow } = setUp();
    service.feed.push(
      entryJson({ revision: 2, data: undefined, resultTruncated: true }),
      entryJson({ scanId: 'next' }),
    );
    if (answer !== undefined) service.runs.set('scan-1', entryJson({ revision: 2, ...answer }));
    await follow(21_000);
    expect(store.rows.get('scan-1')).toMatchObject({ pending: reason, revision: 2 });
    expect(store.rows.has('next')).toBe(true);
  });

  it('are retried in the background until they are complete', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(entryJson({ data: undefined, resultTruncated: true }));
    await follow(10_000);
    expect(store.rows.get('scan-1')?.pending).toBe('not_found');
    service.runs.set('scan-1', entryJson());
    await follow(120_000);
    expect(store.rows.get('scan-1')).toMatchObject({ pending: null, revision: 1 });
  });

  it.each([undefined, false])(
    'ask a run once for a test mode that only an earlier revision states, however often it is delivered (answer: %s)',
    async (partnerTestMode) => {
      const { service, store, follow } = setUp();
      const [stating, silent] = [{ partnerTestMode: true }, { revision: 2, partnerTestMode: undefined }];
      service.feed.push(entryJson(stating), entryJson(silent));
      service.runs.set('scan-1', entryJson({ ...silent, partnerTestMode }));
      const asked = () => service.requests.filter((request) => request === 'scan-1').length;
      await follow(5_000);
      expect(store.rows.get('scan-1')).toMatchObject({ revision: 2, testMode: true, pending: 'test_mode_unknown' });
      for (const again of [[], [stating, silent], [silent], [stating]]) {
        service.feed.push(...again.map(entryJson));
        await follow(120_000);
        expect(store.rows.get('scan-1')).toMatchObject({ testMode: partnerTestMode === undefined, pending: null });
        expect(asked()).toBe(1);
      }
    },
  );

  it('are not downloaded again when they are stored in full', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(entryJson(), entryJson({ data: undefined, resultTruncated: true }));
    await follow(1_000, { pageSize: 1 });
    await follow(1_000);
    service.requests.length = 0;
    service.feed.push(entryJson({ data: undefined, resultTruncated: true }));
    await follow(10_000);
    expect(service.requests.filter((request) => typeof request === 'string')).toEqual([]);
    expect(store.rows.get('scan-1')?.pending).toBeNull();
  });

  it('are replaced when the single-run endpoint has a higher revision', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(entryJson({ data: undefined, resultTruncated: true }));
    service.runs.set('scan-1', entryJson({ revision: 4 }));
    await follow(1_000);
    expect(store.rows.get('scan-1')).toMatchObject({ pending: null, revision: 4 });
  });
});

describe('outages', () => {
  it('of the service are retried with growing pauses until the feed continues automatically', async () => {
    let away = true;
    const pauses: number[] = [];
    const { service, store, start, clock } = setUp({
      service: { before: async () => (away ? Promise.reject(new ModelFailure('http_503')) : undefined) },
      observer: { failed: (_stage, _error, pauseMs) => pauses.push(pauseMs) },
    });
    service.feed.push(...runs(3));
    const stop = start();
    // Over a thousand failures in a row: a bound that doubles each time would be infinite.
    const hours = cases(10, 72);
    await clock.advance(hours * 3_600_000);
    expect(store.rows.size).toBe(0);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(60_000);
    expect(pauses.length).toBeGreaterThan(Math.max(1_024, hours * 60));
    away = false;
    await clock.advance(60_000);
    expect(store.rows.size).toBe(3);
    await stop();
  });

  describe('of the database', () => {
    /** As the setup, with a database that can be away. */
    function outage(options: Parameters<typeof setUp>[0] = {}, isSpared = (_statement: unknown) => false) {
      const parts = setUp(options);
      const database = { away: false };
      const store = new Proxy(parts.store, {
        get: (target, name) => {
          const member: unknown = Reflect.get(target, name);
          if (typeof member !== 'function') return member;
          return async (...args: unknown[]) => {
            if (database.away && !isSpared(name)) throw new StoreFailure('connection');
            return Reflect.apply(member, target, args);
          };
        },
      });
      return { ...parts, database, startAway: () => parts.start({ store }) };
    }

    it.each([
      ['all statements', () => false],
      ['all but renewals, which have connections of their own,', (statement: unknown) => statement === 'renewLeases'],
    ])('end every pause once a renewal is answered after %s failed', async (_, isSpared) => {
      const ended: number[] = [];
      const observer = { polled: () => ended.push(clock.now()) };
      const { clock, service, database, startAway } = outage({ observer }, isSpared);
      const stop = startAway();
      await clock.advance(60_000);
      for (let outages = 0; outages < cases(5, 20); outages += 1) {
        database.away = true;
        await clock.advance(600_000 + outages * 1_000);
        database.away = false;
        const back = clock.now();
        service.feed.push(entryJson({ scanId: `after-${outages}` }));
        ended.length = 0;
        await clock.advance(60_000);
        expect((ended[0] ?? Number.NaN) - back).toBeLessThanOrEqual(10_000); // three checks in a lease's 30 s
      }
      await stop();
    });

    it('do not shorten a pause that the service requested', async () => {
      const polls: number[] = [];
      const all = outage({
        service: {
          before: async () => {
            polls.push(all.clock.monotonic());
            all.database.away = true;
            await all.clock.pause(15_000);
            void all.clock.pause(5_000).then(() => {
              all.database.away = false;
            });
            throw new ModelFailure('http_429', 'retry', 40_000);
          },
        },
      });
      const stop = all.startAway();
      await all.clock.advance(300_000);
      const gaps = polls.slice(1).map((at, n) => at - (polls[n] ?? 0));
      expect(gaps.length).toBeGreaterThan(0);
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(55_000);
      await stop();
    });
  });

  it('obey Retry-After', async () => {
    const polls: number[] = [];
    const { follow, clock } = setUp({
      service: {
        before: async () => {
          polls.push(clock.monotonic());
          throw new ModelFailure('http_429', 'retry', 600_000);
        },
      },
    });
    await follow(1_900_000);
    expect(polls).toHaveLength(4);
  });
});

describe('a stuck cursor', () => {
  it('is polled with pauses when it does not move although there are entries', async () => {
    const outcomes: PollOutcome[] = [];
    const { service, store, follow } = setUp({ observer: { polled: (outcome) => outcomes.push(outcome) } });
    service.feed.push(...runs(30));
    service.readPage = async (request) => {
      service.requests.push(request);
      return rawPage(`{"items":[${runs(10).join()}],"nextCursor":"fixed"}`);
    };
    await follow(60_000);
    expect(service.requests.length).toBeLessThanOrEqual(16);
    expect(store.rows.size).toBe(10);
    expect(outcomes).not.toContain('end');
  });

  it('is stored and reported once, and so is its recovery', async () => {
    const stuckReports: boolean[] = [];
    const { service, store, start, clock } = setUp({ observer: { stuck: (stuck) => stuckReports.push(stuck) } });
    service.readPage = async ({ limit }) => rawPage(`{"items":[${runs(limit).join()}],"nextCursor":""}`);
    const notes = { written: 0 };
    const note = store.storeStuck.bind(store);
    store.storeStuck = async (...args) => {
      notes.written += 1;
      return note(...args);
    };
    const stop = start();
    await clock.advance(60_000);
    const stuckSince = async () => (await store.readStatus('default')).stuckSince;
    expect((await stuckSince())?.getTime()).toBeLessThan(1_000);
    service.readPage = async () => rawPage('{"items":[],"nextCursor":"on"}');
    await clock.advance(60_000);
    expect(await stuckSince()).toBeNull();
    expect(stuckReports).toEqual([true, false]);
    expect(notes.written).toBe(2);
    await stop();
  });

  it('is never stored when it is empty; its entries are, and freshness stays unknown', async () => {
    const { service, store, follow } = setUp();
    // A short page that is still without a cursor when it is asked for again is the end of the feed.
    service.readPage = async ({ limit }) => rawPage(`{"items":[${runs(limit).join()}],"nextCursor":""}`);
    await follow(20_000);
    expect(store.rows.size).toBeGreaterThanOrEqual(10);
    expect(store.feeds.get('default')).toMatchObject({ cursor: null, completeAsOf: null, endReachedAt: null });
  });
});

describe('commits that are fenced although the lease is held', () => {
  it('are tried again with growing pauses, as if a trigger on feeds kept them back', async () => {
    const { service, store, follow } = setUp();
    service.feed.push(...runs(10));
    const commitPage = store.commitPage.bind(store);
    let fenced = 0;
    store.commitPage = async (page) => {
      if (fenced === 20) return commitPage(page);
      fenced += 1;
      return { kind: 'fenced' };
    };
    await follow(20_000);
    expect(fenced).toBeGreaterThan(2);
    expect(fenced).toBeLessThan(20);
    fenced = 20;
    await follow(200_000);
    expect(store.rows.size).toBe(10);
  });

  it('are tried again at once when another writer has moved the position', async () => {
    const { service, store, clock, follow } = setUp();
    service.feed.push(...runs(10));
    const commitPage = store.commitPage.bind(store);
    const times: number[] = [];
    store.commitPage = async (page) => {
      times.push(clock.monotonic());
      return times.length === 1 ? { kind: 'fenced' } : commitPage(page);
    };
    await follow(1_000);
    expect(store.rows.size).toBe(10);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeLessThan(1_000);
  });
});

describe('freshness', () => {
  it('ignores a delivery time in the future', async () => {
    const { service, store, clock, follow } = setUp();
    const begun = clock.now();
    const anHourAgo = (n: number) => new Date(begun - 3_600_000 + n).toISOString();
    service.feed.push(...runs(10, (n) => ({ deliveredAt: n === 9 ? '2070-01-01T00:00:00Z' : anHourAgo(n) })));
    service.readPage = readOnce(service);
    await follow(1_000);
    const feed = store.feeds.get('default');
    expect(store.rows.size).toBe(10);
    expect(feed?.completeAsOf).toBeNull(); // before the first end, no clock tells how old the entries are
    expect(feed?.lastDeliveredAt).toEqual(new Date(anHourAgo(8)));
  });
});

/** Serves the first page; what comes after it is never answered. */
function readOnce(service: ModelService): ModelService['readPage'] {
  const read = service.readPage.bind(service);
  let polls = 0;
  return async (request, signal) => {
    polls += 1;
    if (polls > 1) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    return read(request, signal);
  };
}

describe('the end of the feed', () => {
  it('is found by a request without filters when cursors change at every poll', async () => {
    const outcomes: PollOutcome[] = [];
    const { service, follow, store } = setUp({
      service: { movingCursors: true },
      observer: { polled: (outcome) => outcomes.push(outcome) },
    });
    service.feed.push(...runs(3));
    await follow(11_000);
    expect(outcomes.filter((outcome) => outcome === 'end').length).toBeGreaterThanOrEqual(2);
    expect(service.requests).toContainEqual(
      expect.objectContaining({
        limit: 1,
        filters: UNFILTERED,
      }),
    );
    expect(store.feeds.get('default')?.completeAsOf).toBeGreaterThanOrEqual(10_000);
  });
});
