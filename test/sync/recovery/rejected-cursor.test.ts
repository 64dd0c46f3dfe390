import { describe, expect, it } from 'vitest';
import { noResponseError } from '../../../src/service/errors/connection-errors.js';
import { httpStatusError } from '../../../src/service/errors/status-errors.js';
import { cursorRejection, isUsableCursor } from '../../../src/sync/page/cursors.js';
import type { FeedRequest, Position } from '../../../src/sync/ports/index.js';
import { createCursorRefusals } from '../../../src/sync/recovery/rejected-cursor.js';
import { ModelFailure, ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { type EngineOptions, silentObserver } from '../../support/engine.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { followFor } from '../../support/follow-for.js';
import { rawPage } from '../../support/pages.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR = 3_600_000;
/** Maximum length of a cursor as it is sent, characters. */
const MAX_CURSOR_LENGTH = 7_500;
const status = (of: number) => httpStatusError({ operation: 'feed', status: of });
const reset = () => noResponseError('https://service.test', 'ECONNRESET');

/** All that may mean a rejected cursor, apart from 400. */
const PERSISTING = [
  ...[404, 410, 414, 422, 431].map((of) => [`${of}`, () => status(of)] as const),
  ['a connection reset', reset] as const,
];

/** A feed whose runs were delivered a minute apart. `refuse` gives the error that a request meets, if any. */
function setUp() {
  const clock = new VirtualClock();
  let refuse = (_request: FeedRequest): Error | null => null;
  const service = new ModelService({
    before: async (_operation, request) => {
      const error = typeof request === 'string' ? null : refuse(request);
      if (error !== null) throw error;
    },
  });
  const store = new ModelStore(clock.monotonic);
  const begun = clock.now();
  const deliver = (count: number) => {
    for (let n = 0; n < count; n += 1) {
      const deliveredAt = new Date(begun - (count - n) * 60_000).toISOString();
      service.feed.push(entryJson({ scanId: `run-${n}`, deliveredAt }));
    }
  };
  const resets: Position[] = [];
  const failures: string[] = [];
  const stuck: boolean[] = [];
  const follow = async (ms: number, context: EngineOptions = {}) => {
    const observer = silentObserver({
      cursorReset: (to) => resets.push(to),
      failed: (stage, error) => failures.push(`${stage} ${(error as Error).name}`),
      stuck: (is) => stuck.push(is),
    });
    await followFor(ms, clock, { service, store, observer, ...context });
  };
  const refuses = (which: typeof refuse) => {
    refuse = which;
  };
  return { clock, service, store, deliver, resets, failures, stuck, follow, refuses };
}

const cursorOf = ({ start }: FeedRequest) => ('cursor' in start ? start.cursor : null);
const feedOf = (store: ModelStore) => store.feeds.get('default');

describe.each(PERSISTING)('a cursor that the service answers with %s', (_, error) => {
  it('is replaced by the newest accepted one when that persists, and nothing is missed', async () => {
    const { service, store, deliver, resets, failures, follow, refuses } = setUp();
    deliver(35);
    await follow(1_000);
    refuses((request) => (['35', '30'].includes(cursorOf(request) ?? '') && resets.length === 0 ? error() : null));
    service.feed.push(entryJson({ scanId: 'new' }));
    await follow(5 * 60_000);
    expect(resets).toEqual([{ cursor: '10', since: null }]);
    expect(failures).toHaveLength(3);
    expect(store.rows.size).toBe(36);
  });

  it('is kept while that does not persist', async () => {
    const { service, store, deliver, resets, follow, refuses } = setUp();
    deliver(5);
    await follow(1_000);
    let refused = 0;
    refuses((request) => (cursorOf(request) === '5' && ++refused % 3 !== 0 ? error() : null));
    service.feed.push(entryJson({ scanId: 'new' }));
    await follow(5 * 60_000);
    expect(resets).toEqual([]);
    expect(store.rows.has('new')).toBe(true);
  });

  it('is kept when requests without it get the same answer: an outage, or wrong settings', async () => {
    const { store, deliver, resets, follow, refuses } = setUp();
    deliver(5);
    await follow(1_000);
    refuses(error);
    await follow(HOUR);
    refuses(() => null);
    await follow(5 * 60_000);
    expect(resets).toEqual([]);
    expect(feedOf(store)?.cursor).toBe('5');
  });

  it('is kept when it is accepted right after a request without it', async () => {
    const { store, deliver, resets, follow, refuses } = setUp();
    deliver(5);
    await follow(1_000);
    refuses((request) => (cursorOf(request) === '5' && request.limit > 1 ? error() : null));
    await follow(HOUR);
    expect(resets).toEqual([]);
    expect(feedOf(store)?.cursor).toBe('5');
  });

  it('is replaced by the beginning when the service accepts no cursor', async () => {
    const { store, deliver, resets, follow, refuses } = setUp();
    deliver(12);
    await follow(1_000);
    refuses((request) => (cursorOf(request) !== null && resets.length === 0 ? error() : null));
    await follow(5 * 60_000);
    expect(resets).toEqual([{ cursor: null, since: null }]);
    expect(store.rows.size).toBe(12);
  });

  it.each(['recent', 'backfill'] as const)('restarts a %s pass that has it', async (stage) => {
    const { clock, store, deliver, failures, follow, refuses } = setUp();
    deliver(25);
    await follow(1_000);
    let refused = 0;
    let again = false;
    refuses((request) => {
      again ||= refused > 0 && 'since' in request.start;
      return again || cursorOf(request) !== '10' || ++refused === 0 ? null : error();
    });
    const now = new Date(clock.now());
    if (stage === 'backfill') store.requestBackfill(new Date(now.getTime() - HOUR), now);
    const intervalMs = stage === 'recent' ? 60_000 : null;
    await follow(HOUR / 3, { reconcile: { intervalMs, windowMs: 2 * HOUR, fullIntervalMs: null } });
    expect(new Set(failures.map((failure) => failure.split(' ')[0]))).toEqual(new Set([stage]));
    expect(failures.length).toBeLessThanOrEqual(3);
    expect(store.latestPass(stage)?.finishedAt).toEqual(expect.any(Number));
  });
});

it('treats a 400 as a rejection at once, and other refusals when they persist', () => {
  expect(cursorRejection(status(400))).toBe('certain');
  for (const [, error] of PERSISTING) expect(cursorRejection(error())).toBe('possible');
  for (const other of [401, 403, 408, 409, 413, 429, 500, 503]) expect(cursorRejection(status(other))).toBeNull();
  const refusedConnection = noResponseError('https://service.test', 'ECONNREFUSED');
  for (const other of [refusedConnection, new ModelFailure('timeout'), new Error('bug')]) {
    expect(cursorRejection(other)).toBeNull();
  }
});

it('counts refusals of one cursor in a row', () => {
  const refusals = createCursorRefusals();
  const persist = (cursor: string, error: Error = status(414)) => refusals.isPersistent(cursor, error);
  expect([persist('a'), persist('a'), persist('b'), persist('b'), persist('b')]).toEqual([
    ...[false, false, false, false, true],
  ]);
  expect([persist('c'), persist('c'), persist('c', status(503)), persist('c')]).toEqual([false, false, false, false]);
  refusals.accepted();
  expect([persist('c'), persist('c'), persist('c')]).toEqual([false, false, true]);
  expect(persist('d', status(400))).toBe(true);
});

describe('a nextCursor that is too long to be sent', () => {
  it('is measured as it would be sent', () => {
    expect(isUsableCursor('a'.repeat(MAX_CURSOR_LENGTH))).toBe(true);
    expect(isUsableCursor('a'.repeat(MAX_CURSOR_LENGTH + 1))).toBe(false);
    expect(isUsableCursor('+'.repeat(MAX_CURSOR_LENGTH / 3))).toBe(true);
    expect(isUsableCursor('+'.repeat(MAX_CURSOR_LENGTH / 3 + 1))).toBe(false);
    expect(isUsableCursor('ä'.repeat(MAX_CURSOR_LENGTH))).toBe(false);
    expect(isUsableCursor('a\0')).toBe(false);
  });

  it.each([9_000, 100_000, 5_000_000])(
    'is never stored (%i characters); its entries are, and the feed is reported as stuck',
    async (length) => {
      const { service, store, stuck, resets, follow } = setUp();
      const readPage = service.readPage.bind(service);
      let long = true;
      service.readPage = async (request, signal) => {
        const page = await readPage(request, signal);
        const items = long
          ? [entryJson({ scanId: 'first' })]
          : [entryJson({ scanId: 'first' }), entryJson({ scanId: 'new' })];
        return cursorOf(request) === null ? rawPage(pageJson(items, long ? 'x'.repeat(length) : '2')) : page;
      };
      await follow(60_000);
      expect(store.rows.has('first')).toBe(true);
      expect(feedOf(store)?.cursor).toBeNull();
      expect(stuck).toEqual([true]);
      long = false;
      await follow(60_000);
      expect(store.rows.has('new')).toBe(true);
      expect(feedOf(store)?.cursor).toBe('2');
      expect(resets).toEqual([]);
    },
  );
});
