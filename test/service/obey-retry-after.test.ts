import { expect, it } from 'vitest';
import { httpStatusError } from '../../src/service/errors/status-errors.js';
import { obeyRetryAfter } from '../../src/service/http/obey-retry-after.js';
import type { FeedRequest } from '../../src/sync/ports/index.js';
import { ModelService } from '../simulation/model-service.js';
import { entryJson } from '../support/entries.js';
import { DEFAULT_FILTERS } from '../support/filters.js';
import { VirtualClock } from '../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();
const PAGE: FeedRequest = { filters: DEFAULT_FILTERS, start: { beginning: true }, limit: 1, markdown: false };

/** A service whose first answer is this status. */
function refusing(operation: 'feed' | 'run', status: number, retryAfterMs: number) {
  const clock = new VirtualClock();
  const service = new ModelService({
    before: async () => {
      if (service.requests.length === 1) throw httpStatusError({ operation, status, retryAfterMs });
    },
  });
  service.runs.set('a', entryJson({ scanId: 'a' }));
  const obedient = obeyRetryAfter(service, clock);
  const request = async (kind: 'feed' | 'run') => {
    const sent = kind === 'feed' ? obedient.readPage(PAGE, signal) : obedient.readRun('a', { markdown: false }, signal);
    return clock.run(
      sent.then(
        () => 'answered',
        (error) => error as { status: number; retryAfterMs: number },
      ),
    );
  };
  return { clock, request, sent: () => service.requests.length };
}

it.each(['feed', 'run'] as const)(
  'refuses a %s request with what is left of a long pause, and sends others',
  async (kind) => {
    const { clock, request, sent } = refusing(kind, 503, HOUR_MS);
    expect(await request(kind)).toMatchObject({ status: 503, retryAfterMs: HOUR_MS });
    await clock.advance(HOUR_MS / 2);
    expect(await request(kind)).toMatchObject({ status: 503, retryAfterMs: HOUR_MS / 2 });
    expect(sent()).toBe(1);
    expect(await request(kind === 'run' ? 'feed' : 'run')).toBe('answered');
    await clock.advance(HOUR_MS / 2);
    expect(await request(kind)).toBe('answered');
  },
);

it('sends a request after a short pause', async () => {
  const { clock, request } = refusing('run', 429, 15_000);
  await request('run');
  expect(await request('run')).toBe('answered');
  expect(clock.monotonic()).toBe(15_000);
});

it.each([401, 404])('does not pause after a single run that was answered with %i', async (status) => {
  const { clock, request } = refusing('run', status, HOUR_MS);
  await request('run');
  expect(await request('run')).toBe('answered');
  expect(clock.monotonic()).toBe(0);
});
