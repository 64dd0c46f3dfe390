import { expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { createPageLimit } from '../../../src/sync/page/page-limit.js';
import { requestPage } from '../../../src/sync/page/read-page.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { DEFAULT_FILTERS } from '../../support/filters.js';

it('requests a given number of entries first, then as many as the limit allows, and halves it while they are too many', async () => {
  const service = new ModelService();
  const requested: number[] = [];
  const readPage = service.readPage.bind(service);
  service.readPage = async (request, signal) => {
    requested.push(request.limit);
    if (request.limit > 1) throw new ModelFailure('too_large', 'retry');
    return readPage(request, signal);
  };
  const read = { filters: DEFAULT_FILTERS, markdown: false, limit: createPageLimit(3, 1000) };
  const at = { cursor: null, since: null };
  await requestPage(at, read, { service, clock: systemClock }, new AbortController().signal, 4);
  expect(requested).toEqual([4, 3, 1]);
  expect(read.limit.entries).toBe(1);
});
