import { describe, expect, it } from 'vitest';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import type { FeedRequest, Position, SyncObserver } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type EngineOptions, silentObserver } from '../../support/engine.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { followFor } from '../../support/follow-for.js';
import { rawPage } from '../../support/pages.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR = 3_600_000;

/** A feed of runs delivered a minute apart, up to the clock's beginning. */
function setUp(over: Partial<SyncObserver> = {}) {
  const clock = new VirtualClock();
  const rejected = new Set<string>();
  let refused = (_cursor: string | null) => false;
  const service = new ModelService({
    before: async (_operation, request) => {
      const cursor = typeof request === 'string' ? null : cursorOf(request);
      if (refused(cursor) || (cursor !== null && rejected.has(cursor))) throw new ModelFailure('http_400', 'hold');
    },
  });
  const store = new ModelStore(clock.monotonic);
  const begun = clock.now();
  const deliver = (count: number, prefix: string) => {
    for (let n = 0; n < count; n += 1) {
      const deliveredAt = new Date(begun - (count - n) * 60_000).toISOString();
      service.feed.push(entryJson({ scanId: `${prefix}-${n}`, deliveredAt }));
    }
  };
  const resets: Position[] = [];
  const follow = async (ms: number, context: EngineOptions = {}) => {
    const cursorReset = (to: Position) => {
      resets.push(to);
      rejected.clear(); // what is served from now on has new cursors, if with the same names here
    };
    const observer = silentObserver({ cursorReset, ...over });
    await followFor(ms, clock, { service, store, observer, ...context });
  };
  const refuse = (whether: typeof refused) => {
    refused = whether;
  };
  return { clock, service, store, rejected, resets, deliver, follow, refuse };
}

const cursorOf = ({ start }: FeedRequest) => ('cursor' in start ? start.cursor : null);
const feedOf = (store: ModelStore) => store.feeds.get('default');

describe('a cursor that the service rejects', () => {
  it('is replaced by the newest earlier one that is still accepted, and nothing is missed', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(35, 'run');
    await follow(1_000);
    expect(feedOf(store)?.cursor).toBe('35');
    for (const cursor of ['35', '30']) rejected.add(cursor);
    service.feed.push(entryJson({ scanId: 'new' }));
    await follow(10_000);
    expect(resets).toEqual([{ cursor: '10', since: null }]);
    expect(store.rows.has('new')).toBe(true);
    expect(store.rows.size).toBe(36);
  });

  it('is replaced by a day before the last delivery when no earlier one is accepted', async () => {
    const { store, rejected, resets, deliver, follow } = setUp();
    deliver(12, 'run');
    await follow(1_000);
    for (const cursor of ['10', '12']) rejected.add(cursor);
    await follow(10_000);
    expect(resets).toEqual([{ cursor: '1', since: null }]);
    expect(store.rows.size).toBe(12);
  });

  it('is replaced by the beginning when a time would skip unread runs', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(35, 'run');
    await follow(1_000);
    const { cursor = null } = feedOf(store) ?? {};
    // `since` means the submission: a run that took two days is not among those submitted since the day before.
    const deliveredAt = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
    service.feed.push(entryJson({ scanId: 'slow', deliveredAt: deliveredAt(1) }));
    service.feed.push(entryJson({ scanId: 'next', deliveredAt: deliveredAt(2) }));
    const read = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      const start = 'since' in request.start ? { cursor: '36' } : request.start;
      return read({ ...request, start }, signal);
    };
    if (cursor !== null) rejected.add(cursor);
    for (const { cursor: earlier } of feedOf(store)?.earlier ?? []) if (earlier !== null) rejected.add(earlier);
    await follow(60_000);
    expect(resets).toEqual([{ cursor: null, since: null }]);
    expect(store.rows.has('slow')).toBe(true);
  });

  it('skips nothing when a page requested by time leaves out runs that were submitted earlier', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(5, 'run');
    await follow(1_000);
    for (const scanId of ['slow', 'next']) service.feed.push(entryJson({ scanId }));
    const read = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      const page = await read(request, signal);
      if (!('since' in request.start)) return page;
      const kept = service.feed.slice(0, request.limit).filter((entry) => !entry.includes('slow'));
      return rawPage(pageJson(kept, page.nextCursor));
    };
    rejected.add('5');
    await follow(60_000);
    expect(resets).toEqual([{ cursor: '1', since: null }]);
    expect(store.rows.has('slow')).toBe(true);
  });

  it('skips nothing when only the first of the runs delivered within a millisecond was read', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(1, 'run');
    await follow(1_000);
    const { deliveredAt } = JSON.parse(service.feed[0] ?? '');
    for (const scanId of ['slow', 'next', 'last']) service.feed.push(entryJson({ scanId, deliveredAt }));
    service.runs.set('run-0', service.feed[0] ?? '');
    // `since` means the submission: the slow run was submitted earlier.
    const read = service.readPage.bind(service);
    service.readPage = (request, signal) => {
      const start = 'since' in request.start ? { cursor: '2' } : request.start;
      return read({ ...request, start }, signal);
    };
    rejected.add('1');
    await follow(60_000);
    expect(resets).toEqual([{ cursor: null, since: null }]);
    expect([...store.rows.keys()].sort()).toEqual(['last', 'next', 'run-0', 'slow']);
  });

  it('is replaced when a page of the usual length would be too large', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(12, 'run');
    await follow(1_000);
    const readPage = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      if (request.limit > 2) throw new ModelFailure('too_large', 'hold');
      return readPage(request, signal);
    };
    for (const cursor of ['10', '12']) rejected.add(cursor);
    await follow(30_000);
    expect(resets).toHaveLength(1);
    expect(store.feeds.get('default')?.cursor).toBe('12');
  });

  it.each(['too_large', 'too_many_values'])(
    'is replaced when reading the first run of the feed fails with %s',
    async (kind) => {
      const { service, store, rejected, resets, deliver, follow } = setUp();
      deliver(12, 'run');
      await follow(1_000);
      const readPage = service.readPage.bind(service);
      service.readPage = async (request, signal) => {
        if ('beginning' in request.start) throw new ModelFailure(kind, 'hold');
        return readPage(request, signal);
      };
      rejected.add('12');
      await follow(30_000);
      expect(resets).toEqual([{ cursor: '10', since: null }]);
      expect(feedOf(store)?.cursor).toBe('12');
    },
  );

  it('is kept when the same filters are refused without it too, since the settings are wrong', async () => {
    const { store, resets, deliver, follow, refuse } = setUp();
    deliver(3, 'run');
    await follow(1_000);
    refuse(() => true);
    await follow(10 * 60_000);
    expect(resets).toEqual([]);
    expect(feedOf(store)?.cursor).toBe('3');
  });

  it('holds the feed when none of the runs stored for that time is delivered again', async () => {
    const failures: string[] = [];
    const { service, store, rejected, resets, deliver, follow } = setUp({
      failed: (_stage, error) => failures.push((error as Error).name),
    });
    deliver(8, 'ours');
    await follow(1_000);
    rejected.add('8');
    service.feed.length = 0;
    deliver(8, 'theirs');
    await follow(10 * 60_000);
    expect(new Set(failures)).toEqual(new Set(['AnotherOrganization']));
    expect(resets).toEqual([]);
    expect([...store.rows.keys()].filter((scanId) => scanId.startsWith('theirs'))).toEqual([]);
  });

  it('stops passes from storing runs that may belong to another organization', async () => {
    const failures = new Set<string>();
    const { clock, service, store, rejected, resets, deliver, follow } = setUp({
      failed: (stage, error) => failures.add(`${stage} ${(error as Error).name}`),
    });
    deliver(8, 'ours');
    await follow(1_000);
    rejected.add('8');
    service.feed.length = 0;
    deliver(8, 'theirs');
    const now = new Date(clock.now());
    store.requestBackfill(new Date(now.getTime() - HOUR), now);
    const reconcile = { intervalMs: 60_000, windowMs: 2 * HOUR, fullIntervalMs: null };
    await follow(10 * 60_000, { reconcile });
    expect(failures).toEqual(new Set(['feed AnotherOrganization', 'recent CursorRejected', 'backfill CursorRejected']));
    expect(resets).toEqual([]);
    expect([...store.rows.keys()].filter((scanId) => scanId.startsWith('theirs'))).toEqual([]);
  });

  describe('when only unknown runs are delivered again, as after filters were widened,', () => {
    async function rejectedAmongUnknown(answers: (scanId: string) => ModelFailure | null) {
      const failures: string[] = [];
      const budget = createMemoryBudget(64 * 1024 * 1024);
      const it = setUp({ failed: (_stage, error) => failures.push((error as Error).constructor.name) });
      it.deliver(8, 'ours');
      await it.follow(1_000);
      it.rejected.add('8');
      it.service.feed.length = 0;
      it.deliver(8, 'widened');
      const readRun = it.service.readRun.bind(it.service);
      it.service.readRun = async (scanId, options, signal) => {
        const failure = answers(scanId);
        if (failure !== null) throw failure;
        it.service.runs.set(scanId, entryJson({ scanId }));
        return readRun(scanId, options, signal);
      };
      await it.follow(60_000, { budget });
      return { ...it, failures, budget };
    }

    it('the feed continues when the service has one of the runs stored for that time', async () => {
      const { resets, store, failures } = await rejectedAmongUnknown((scanId) =>
        scanId === 'ours-6' ? null : new ModelFailure('http_404'),
      );
      expect(resets).toHaveLength(1);
      expect(store.rows.has('widened-7')).toBe(true);
      expect(new Set(failures)).toEqual(new Set(['CursorRejected']));
    });

    it('the memory of the runs loaded for the check is released', async () => {
      const { resets, budget } = await rejectedAmongUnknown(() => null);
      expect(resets).toHaveLength(1);
      expect(budget.reservedBytes).toBe(0);
    });

    it('the feed neither continues nor blames the key when the check is inconclusive', async () => {
      const { resets, failures } = await rejectedAmongUnknown((scanId) =>
        scanId === 'ours-6' ? new ModelFailure('http_503') : new ModelFailure('http_404'),
      );
      expect(resets).toEqual([]);
      expect(new Set(failures)).toEqual(new Set(['ModelFailure']));
    });
  });

  it('is replaced when runs of another organization are stored for the time that is delivered again', async () => {
    const { service, store, rejected, resets, deliver, follow } = setUp();
    deliver(8, 'theirs');
    await follow(1_000, { identity: { name: 'another' } });
    service.feed.length = 0;
    deliver(1, 'ours');
    await follow(1_000);
    rejected.add('1');
    service.feed.length = 0;
    deliver(8, 'late');
    service.feed.pop(); // the runs that are delivered again are earlier than the one that was read
    await follow(60_000);
    expect(resets).toHaveLength(1);
    expect(store.rows.get('late-6')).toMatchObject({ feed: 'default' });
  });

  it('is retried with pauses when every cursor is rejected', async () => {
    const { service, deliver, follow, refuse } = setUp();
    deliver(25, 'run');
    await follow(1_000);
    refuse((cursor) => cursor !== null);
    service.requests.length = 0;
    await follow(60_000);
    expect(service.requests.length).toBeLessThan(200);
  });

  it('is not replaced by a position ahead of what was read since a rewind', async () => {
    const { store, resets, deliver, follow, refuse } = setUp();
    deliver(40, 'run');
    await follow(1_000);
    store.rewind('default', null);
    refuse((cursor) => cursor === '20');
    await follow(1_000);
    expect(resets[0]).toEqual({ cursor: '1', since: null });
  });

  it('does not cause a false circle when pages are read again', async () => {
    const { service, store, rejected, deliver, follow } = setUp();
    deliver(200, 'run');
    let polls = 0;
    const read = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      polls += 1;
      if (polls === 21) for (let n = 10; n <= 200; n += 10) rejected.add(String(n)); // at its end; then all are forgotten
      return read(request, signal);
    };
    await follow(16_000);
    expect(store.rows.size).toBe(200);
    expect(feedOf(store)?.cursor).toBe('200');
  });
});
