import { afterEach, expect, it, vi } from 'vitest';
import { createRateLimit } from '../../src/service/http/rate-limit.js';
import type { FeedService } from '../../src/sync/ports/index.js';
import { DEFAULT_FILTERS } from '../support/filters.js';
import { VirtualClock } from '../support/virtual-clock.js';

afterEach(() => vi.restoreAllMocks());

function recordingService() {
  const asked: string[] = [];
  const service: FeedService = {
    readPage: async () => {
      asked.push('page');
      return Promise.reject(new Error('only the order counts'));
    },
    readRun: async (scanId) => {
      asked.push(scanId);
      return Promise.reject(new Error('only the order counts'));
    },
  };
  return { asked, service };
}

const signal = new AbortController().signal;
const request = {
  filters: DEFAULT_FILTERS,
  start: { beginning: true },
  limit: 1,
  markdown: false,
} as const;
const run = { markdown: false, maxBytes: 1 };

it('sends requests for pages before waiting requests for results', async () => {
  const { asked, service } = recordingService();
  const limited = createRateLimit(200)(service);
  const results = ['a', 'b', 'c'].map((scanId) => limited.readRun(scanId, run, signal));
  await Promise.allSettled([...results, limited.readPage(request, signal)]);
  expect(asked).toEqual(['a', 'page', 'b', 'c']);
});

it('sends every fourth request for a result when pages always wait', async () => {
  const { asked, service } = recordingService();
  const clock = new VirtualClock();
  const limited = createRateLimit(100, clock)(service);
  const repeat = async (read: (signal: AbortSignal) => Promise<unknown>) => {
    const { signal } = new AbortController();
    for (;;) await read(signal).catch(() => {});
  };
  for (let n = 0; n < 50; n += 1) void repeat((signal) => limited.readPage(request, signal));
  for (let n = 0; n < 8; n += 1) void repeat((signal) => limited.readRun('run', run, signal));
  await clock.advance(9_999);
  expect(asked).toHaveLength(1000);
  expect(asked.filter((kind) => kind === 'run')).toHaveLength(250);
});

it('keeps its rate when the wall clock is set back by an hour', async () => {
  const { asked, service } = recordingService();
  const limited = createRateLimit(200)(service);
  const read = (scanId: string) => limited.readRun(scanId, run, signal).catch(() => {});
  await read('a');
  vi.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
  await Promise.all(['b', 'c'].map(read));
  expect(asked).toEqual(['a', 'b', 'c']);
});

it('gives the slot to the next request when one is cancelled while it waits', async () => {
  const { asked, service } = recordingService();
  const clock = new VirtualClock();
  const limited = createRateLimit(1, clock)(service);
  const stop = new AbortController();
  await limited.readRun('a', run, signal).catch(() => {});
  const cancelled = limited.readRun('b', run, stop.signal);
  const next = limited.readRun('c', run, signal).catch(() => {});
  stop.abort(new Error('cancelled'));
  await expect(cancelled).rejects.toThrow('cancelled');
  await clock.run(next);
  expect([asked, clock.monotonic()]).toEqual([['a', 'c'], 1000]);
});

it('spaces the requests of all services together when they share a limit', async () => {
  const { asked, service } = recordingService();
  const limit = createRateLimit(200);
  const results = ['a', 'b'].map((scanId) => limit(service).readRun(scanId, run, signal));
  await Promise.allSettled([...results, limit(service).readPage(request, signal)]);
  expect(asked).toEqual(['a', 'page', 'b']);
});

it('sends requests at once when there is no limit', () => {
  const { service } = recordingService();
  expect(createRateLimit(null)(service)).toBe(service);
});
