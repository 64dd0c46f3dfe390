import { expect, it } from 'vitest';
import { httpStatusError } from '../../../src/service/errors/status-errors.js';
import { obeyRetryAfter } from '../../../src/service/http/obey-retry-after.js';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import { checkEntries } from '../../../src/sync/page/check-entries.js';
import { createResultLoader } from '../../../src/sync/results/resolve-truncated.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { isCollected } from '../../support/collect-garbage.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { rawPage } from '../../support/pages.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR_MS = 3_600_000;
const KEPT_DAYS = 10;

it.each([
  [null, ['new', 'due', 'old', 'undated']],
  [KEPT_DAYS, ['new', 'due', 'undated']],
])('loads no result of a page that is too old to be stored with a retention of %j days', async (keptDays, loaded) => {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const budget = createMemoryBudget(1024 * 1024);
  const loader = createResultLoader({ service, store, clock, budget, markdown: false, concurrency: 1, keptDays });
  // The clock of the database, which decides about `due`, may be behind by an hour.
  const ages = { new: HOUR_MS, due: (KEPT_DAYS * 24 + 1) * HOUR_MS - 1, old: (KEPT_DAYS * 24 + 1) * HOUR_MS + 1 };
  const times = Object.entries(ages).map(
    ([scanId, age]) => [scanId, new Date(clock.now() - age).toISOString()] as const,
  );
  const entries = [...times, ['undated', null] as const].map(([scanId, deliveredAt]) => {
    service.runs.set(scanId, entryJson({ scanId, deliveredAt }));
    return entryJson({ scanId, deliveredAt, data: undefined, resultTruncated: true });
  });
  const page = checkEntries(rawPage(pageJson(entries)));
  const completed = await loader.loadResults(page.entries, budget.enqueue('feed'), new AbortController().signal);
  expect(service.requests).toEqual(loaded);
  const resolved = completed.filter(({ loading }) => loading === 'resolved');
  expect(resolved.map(({ result }) => result?.accepted.run.scanId)).toEqual(loaded);
  expect(completed).toHaveLength(entries.length);
});

it.each([
  [HOUR_MS, 'as pending, without another request', ['a'], ['pending', 'pending', 'pending']],
  [15_000, 'after its results were requested again', ['a', 'a', 'b', 'c'], ['resolved', 'resolved', 'resolved']],
])('obeys a Retry-After of %i ms: the page commits %s', async (retryAfterMs, _, requests, loadings) => {
  const clock = new VirtualClock();
  const pause = httpStatusError({ operation: 'run', status: 429, retryAfterMs });
  const service = new ModelService({
    before: async () => {
      if (service.requests.length === 1) throw pause;
    },
  });
  const budget = createMemoryBudget(1024 * 1024);
  const loader = createResultLoader({
    ...{ service: obeyRetryAfter(service, clock), clock, budget, markdown: false, concurrency: 1, keptDays: null },
    store: new ModelStore(clock.now, { monotonic: clock.monotonic }),
  });
  for (const scanId of ['a', 'b', 'c']) service.runs.set(scanId, entryJson({ scanId }));
  const entries = [...service.runs.keys()].map((scanId) =>
    entryJson({ scanId, data: undefined, resultTruncated: true }),
  );
  const page = checkEntries(rawPage(pageJson(entries)));
  const completed = loader.loadResults(page.entries, budget.enqueue('feed'), new AbortController().signal);
  const loaded = (await clock.run(completed)).map(({ loading }) => loading);
  expect([service.requests.toSorted(), loaded]).toEqual([requests, loadings]);
});

it('keeps no result in memory once its page is released, not even the first one', async () => {
  const clock = new VirtualClock();
  const service = new ModelService();
  const readRun = service.readRun.bind(service);
  let first: WeakRef<object> | undefined;
  service.readRun = async (...given) => {
    const answer = await readRun(...given);
    first ??= new WeakRef(answer.body);
    return answer;
  };
  const store = new ModelStore(clock.now, { monotonic: clock.monotonic });
  const budget = createMemoryBudget(1024 * 1024);
  const loader = createResultLoader({ service, store, clock, budget, markdown: false, concurrency: 2, keptDays: null });
  const complete = async (...scanIds: readonly string[]) => {
    const ticket = budget.enqueue('feed');
    const entries = scanIds.map((scanId) => {
      service.runs.set(scanId, entryJson({ scanId }));
      return entryJson({ scanId, data: undefined, resultTruncated: true });
    });
    const page = checkEntries(rawPage(pageJson(entries)));
    const completed = await loader.loadResults(page.entries, ticket, new AbortController().signal);
    ticket.close();
    service.runs.clear();
    return completed.map(({ loading }) => loading);
  };
  expect(await complete('a', 'b')).toEqual(['resolved', 'resolved']);
  expect(await isCollected(first)).toBe(true);
  expect(await complete('c')).toEqual(['resolved']); // the loader is in use
});
