import { describe, expect, it } from 'vitest';
import type { SyncObserver } from '../../../src/sync/ports/index.js';
import { ModelFailure, ModelService, type ModelServiceOptions } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type EngineOptions, silentObserver } from '../../support/engine.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { followFor } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
const PAGES = { pageSize: 60 };

/** A feed with a recent pass every minute. */
function setUp(
  observer: Partial<SyncObserver> = {},
  options: (clock: VirtualClock) => ModelServiceOptions = () => ({}),
) {
  const clock = new VirtualClock();
  const service = new ModelService(options(clock));
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic, pendingRetryMs: HOUR_MS });
  const deliveredAt = new Date(clock.now() - HOUR_MS).toISOString();
  const entry = (over: Fields) => entryJson({ deliveredAt, ...over });
  const follow = async (ms: number, over: EngineOptions = {}) => {
    const reconcile = { intervalMs: 60_000, windowMs: 2 * HOUR_MS, fullIntervalMs: null };
    const context = { service, store, observer: silentObserver(observer), reconcile, pendingRetryMs: HOUR_MS };
    await followFor(ms, clock, { ...context, ...over });
  };
  return { clock, service, store, entry, follow };
}

it('counts runs that the cursor skipped, not values that a stored revision lacked', async () => {
  const found: unknown[] = [];
  const { service, store, entry, follow } = setUp({ reconciled: (counts) => found.push(counts) });
  service.feed.push(
    entry({ scanId: 'corrected' }),
    entry({ scanId: 'truncated', data: undefined, resultTruncated: true }),
    entry({ scanId: 'gone' }),
  );
  await follow(50_000);
  expect(store.rows.get('truncated')?.pending).not.toBeNull();
  // Behind the cursor, which is their number.
  service.feed.splice(
    0,
    3,
    entry({ scanId: 'late' }),
    entry({ scanId: 'truncated' }),
    entry({ scanId: 'corrected', revision: 2 }),
  );
  await follow(120_000);
  expect(store.rows.get('truncated')?.pending).toBeNull();
  expect(found).toEqual([{ first: 1, later: 1 }]);
});

it('finds a skipped run when its delivery time is far in the future, and leaves later deliveries to the feed', async () => {
  const found: unknown[] = [];
  const { service, store, clock, entry, follow } = setUp({ reconciled: (counts) => found.push(counts) });
  service.feed.push(entry({ scanId: 's1' }), entry({ scanId: 's2' }), entry({ scanId: 's3' }));
  await follow(50_000);
  // Behind the cursor, which is their number.
  const inAnHour = new Date(clock.now() + HOUR_MS).toISOString();
  service.feed.splice(
    0,
    2,
    entry({ scanId: 'dated wrong', deliveredAt: '2038-01-19T03:14:07Z' }),
    entry({ scanId: 'later', deliveredAt: inAnHour }),
  );
  await follow(120_000);
  expect(store.rows.has('dated wrong')).toBe(true);
  expect(store.rows.has('later')).toBe(false);
  expect(found).toEqual([{ first: 1, later: 0 }]);
});

it('stores a skipped run, and claims only what it can, when a cache repeats pages of the pass', async () => {
  const { clock, service, store, entry, follow } = setUp();
  const readPage = service.readPage.bind(service);
  let ageMs = HOUR_MS;
  service.readPage = async (request, signal) => {
    const page = await readPage(request, signal);
    const isOfPass = 'since' in request.start && request.limit !== 1;
    return isOfPass ? { ...page, ageMs, cache: { evidence: `Age: ${ageMs / 1000}`, name: null } } : page;
  };
  const reconciledAsOf = () => store.feeds.get('default')?.reconciledAsOf ?? null;
  service.feed.push(entry({ scanId: 'read' }));
  await follow(50_000);
  service.feed.splice(0, 1, entry({ scanId: 'late' }));
  await follow(3 * 60_000);
  expect(store.rows.has('late')).toBe(true);
  expect(reconciledAsOf()).toBeNull();
  ageMs = 5 * 60_000;
  await follow(3 * 60_000);
  expect(reconciledAsOf()).toBeLessThanOrEqual(clock.now() - ageMs);
  expect(reconciledAsOf()).toBeGreaterThan(clock.now() - ageMs - 3 * 60_000);
});

it('finds a skipped run when the answer sets the delivery times', async () => {
  const { service, store, clock, entry, follow } = setUp();
  const asStored = service.readPage.bind(service);
  service.readPage = async (request, signal) => {
    await clock.sleep(10, signal);
    service.feed.forEach((text, index) => {
      service.feed[index] = JSON.stringify({ ...JSON.parse(text), deliveredAt: new Date(clock.now()).toISOString() });
    });
    return asStored(request, signal);
  };
  service.feed.push(...Array.from({ length: 25 }, (_, n) => entry({ scanId: `scan-${n}` })));
  await follow(50_000);
  expect(store.rows.size).toBe(25);
  service.feed[3] = entry({ scanId: 'skipped' });
  await follow(120_000);
  expect(store.rows.has('skipped')).toBe(true);
});

it('begins a pass when the last one ended in the future, after the clock of the database was set back', async () => {
  const { service, store, entry, follow } = setUp();
  service.feed.push(entry({ scanId: 's1' }));
  await follow(50_000);
  const last = store.latestPass('recent');
  if (last?.finishedAt == null) throw new Error('no pass has finished');
  last.finishedAt += 24 * HOUR_MS;
  await follow(30_000);
  expect(store.latestPass('recent')?.id).not.toBe(last.id);
});

it('requests a truncated run without markdown only once', async () => {
  const { service, store, entry, follow } = setUp();
  service.feed.push(entry({ scanId: 'bare', resultTruncated: true }));
  service.runs.set('bare', entry({ scanId: 'bare', markdown: null }));
  const downloads = () => service.requests.filter((request) => typeof request === 'string');
  await follow(HOUR_MS / 2, { ...PAGES, markdown: true });
  expect(store.latestPass('recent')?.finishedAt).not.toBeNull();
  expect(downloads()).toEqual(['bare']);
  expect(store.rows.get('bare')).toMatchObject({ pending: null, markdown: null, markdownAbsent: true });
});

it('reports no recovery while it cannot begin', async () => {
  const reports: string[] = [];
  const { service, entry, follow } = setUp(
    {
      failed: (stage) => reports.push(`${stage} failed`),
      recovered: (stage) => stage === 'recent' && reports.push('recent recovered'),
    },
    () => ({
      before: async (_operation, request) => {
        if (typeof request !== 'string' && 'since' in request.start) throw new ModelFailure('http_503');
      },
    }),
  );
  service.feed.push(entry({ scanId: 's1' }));
  await follow(60_000);
  expect(reports.length).toBeGreaterThan(4);
  expect(new Set(reports)).toEqual(new Set(['recent failed']));
});

it('reports the recovery when no pass is due after a failure', async () => {
  const reports: string[] = [];
  const { store, follow } = setUp({
    failed: (stage) => reports.push(`${stage} failed`),
    recovered: (stage) => stage === 'full' && reports.push('full recovered'),
  });
  const readLastPass = store.readLastPass.bind(store);
  let answers = false;
  store.readLastPass = async (feed, kind) => {
    if (kind === 'full' && !answers) {
      answers = true;
      throw new ModelFailure('connection');
    }
    return readLastPass(feed, kind);
  };
  await follow(20_000, { reconcile: { intervalMs: null, windowMs: HOUR_MS, fullIntervalMs: HOUR_MS } });
  expect(reports).toEqual(['full failed', 'full recovered']);
});

it('reads no further than the feed is complete to when the service answers slowly', async () => {
  const { store, follow } = setUp({}, (clock) => ({
    before: (_operation, _request, signal) => clock.sleep(20_000, signal),
  }));
  await follow(170_000, { pollIntervalMs: HOUR_MS });
  expect(store.latestPass('recent')?.until.getTime()).toBe(store.feeds.get('default')?.completeAsOf);
});

it('reads as far as the feed is complete to when the database answers slowly', async () => {
  const { clock, store, follow } = setUp();
  const readStatus = store.readStatus.bind(store);
  store.readStatus = async (feed) => {
    const readAt = clock.monotonic();
    await clock.sleep(1_500, new AbortController().signal);
    return { ...(await readStatus(feed)), readAt };
  };
  await follow(170_000, { pollIntervalMs: HOUR_MS });
  expect(store.latestPass('recent')?.until.getTime()).toBe(store.feeds.get('default')?.completeAsOf);
});

it('is reconciled up to its own end, although the feed continues meanwhile', async () => {
  const { store, follow } = setUp();
  const beginPass = store.beginPass.bind(store);
  const begun: (number | undefined)[] = [];
  store.beginPass = async (lease, pass) => {
    const feed = store.feeds.get('default');
    begun.push(pass.completeAsOf.getTime());
    if (feed?.completeAsOf) feed.completeAsOf += 1_000; // a poll in between
    return beginPass(lease, pass);
  };
  await follow(170_000, { pollIntervalMs: HOUR_MS });
  expect(store.feeds.get('default')?.reconciledAsOf).toBe(begun.at(-1));
});

it('ends when the lease is lost', async () => {
  const { service, store, entry, follow } = setUp();
  const taken: unknown[] = [];
  service.feed.push(...Array.from({ length: 50 }, (_, n) => entry({ scanId: `s${n}` })));
  await follow(50_000);
  const commitPass = store.commitPass.bind(store);
  let commits = 0;
  store.commitPass = async (commit) => {
    commits += 1;
    if (commits > 100) throw new Error('it reads on');
    store.rewind('default', '50'); // raises the epoch, as another holder would
    return commitPass(commit);
  };
  await follow(30_000, { observer: silentObserver({ leading: (until) => until === null && taken.push(commits) }) });
  expect(taken[0]).toBe(1);
});

it('reads lost commits again and keeps the lease', async () => {
  const { service, store, entry, follow } = setUp();
  const few = { pageSize: 10 };
  service.feed.push(...Array.from({ length: 50 }, (_, n) => entry({ scanId: `s${n}` })));
  await follow(50_000, few);
  const window = () => store.latestPass('recent');
  const epoch = store.feeds.get('default')?.epoch ?? 0;
  // Behind the feed's cursor: only the pass reads them.
  service.feed.splice(0, 50, ...Array.from({ length: 50 }, (_, n) => entry({ scanId: `late${n}` })));
  const commitPass = store.commitPass.bind(store);
  const storedAtTheEnd: number[] = [];
  let commits = 0;
  store.commitPass = async (commit) => {
    commits += 1;
    if (commits === 4) {
      // As after a failover to a standby that had received the first commit only.
      Object.assign(window() ?? {}, { cursor: '10' });
      for (let n = 10; n < 30; n += 1) store.rows.delete(`late${n}`);
    }
    const outcome = await commitPass(commit);
    if (window()?.finishedAt !== null)
      storedAtTheEnd.push([...store.rows.keys()].filter((id) => id.startsWith('late')).length);
    return outcome;
  };
  await follow(60_000, few);
  expect(storedAtTheEnd).toEqual([50]);
  expect(store.feeds.get('default')?.epoch).toBe(epoch + 1);
});

describe('a recent pass over a feed of which most entries are unusable', () => {
  const garbage = (count: number) => (service: ModelService, entry: (over: Fields) => string) => {
    service.feed.splice(
      0,
      count,
      ...Array.from({ length: count }, (_, n) => entry({ scanId: `s${n}`, status: 'lost' })),
    );
  };

  it('is held instead of quarantining all of them', async () => {
    const failures: string[] = [];
    const { service, store, entry, follow } = setUp({
      failed: (stage, error) => failures.push(`${stage} ${(error as Error).name}`),
    });
    service.feed.push(...Array.from({ length: 150 }, (_, n) => entry({ scanId: `s${n}` })));
    await follow(50_000, PAGES);
    garbage(150)(service, entry);
    await follow(600_000, PAGES);
    expect(new Set(failures)).toEqual(new Set(['recent MostlyBad']));
    expect(store.quarantine.size).toBeLessThanOrEqual(60); // one page alone is too short to decide
    expect(store.latestPass('recent')?.finishedAt).toBeNull();
  });

  it('continues when the bad entries are in quarantine already', async () => {
    const { service, store, entry, follow } = setUp();
    const few = { ...PAGES, pageSize: 10 };
    for (let n = 0; n < 150; n += 10) {
      service.feed.push(...Array.from({ length: 10 }, (_, m) => entry({ scanId: `s${n + m}`, status: 'lost' })));
      await follow(10_000, few);
    }
    expect(store.quarantine.size).toBe(150);
    await follow(600_000, PAGES);
    expect(store.latestPass('recent')?.finishedAt).not.toBeNull();
  });
});

it("claims nothing after its end when the service's clock is slightly ahead", async () => {
  const AHEAD_MS = 2_400;
  const { clock, service, store, entry, follow } = setUp();
  service.feed.push(entry({ scanId: 'a' }));
  const readPage = service.readPage.bind(service);
  service.readPage = async (request, signal) => {
    const page = await readPage(request, signal);
    const serviceDate = new Date(Math.floor((clock.now() + AHEAD_MS) / 1_000) * 1_000);
    await clock.sleep(300, signal);
    return { ...page, serviceDate };
  };
  const leads: number[] = [];
  const beginPass = store.beginPass.bind(store);
  store.beginPass = (lease, pass) => {
    leads.push(pass.until.getTime() - (pass.completeAsOf.getTime() + AHEAD_MS));
    return beginPass(lease, pass);
  };
  await follow(HOUR_MS / 4);
  expect(leads.length).toBeGreaterThan(5);
  expect(Math.min(...leads)).toBeGreaterThanOrEqual(0);
});
