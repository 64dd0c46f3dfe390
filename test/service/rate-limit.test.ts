import { expect, it } from 'vitest';
import { limitRate } from '../../src/service/http/rate-limit.js';
import type { FeedService } from '../../src/sync/ports/index.js';

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
  filters: { status: ['completed'], environment: 'prod', documentType: null },
  start: { beginning: true },
  limit: 1,
  markdown: false,
} as const;
const run = { markdown: false, maxBytes: 1 };

it('sends requests for pages before waiting requests for results', async () => {
  const { asked, service } = recordingService();
  const limited = limitRate(service, 200);
  const results = ['a', 'b', 'c'].map((scanId) => limited.readRun(scanId, run, signal));
  await Promise.allSettled([...results, limited.readPage(request, signal)]);
  expect(asked).toEqual(['a', 'page', 'b', 'c']);
});

it('sends requests at once when there is no limit', () => {
  const { service } = recordingService();
  expect(limitRate(service, null)).toBe(service);
});
