import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import { listsAnything, readServiceDate } from '../../../src/sync/page/probe.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { DEFAULT_FILTERS } from '../../support/filters.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const probe = { filters: DEFAULT_FILTERS, start: { beginning: true } } as const;
const MIB = 1024 * 1024;
const never = new AbortController().signal;
const large = () => entryJson({ fileName: '.'.repeat(2 * MIB) });

it.each([
  ['nothing', [], false],
  ['an entry', [entryJson()], true],
  ['an entry of which it reads no more than it has to', [large()], true],
] as const)('reports whether the feed lists anything when it lists %s', async (_, entries, listed) => {
  const service = new ModelService();
  service.feed.push(...entries);
  const readPage = service.readPage.bind(service);
  const bounds: unknown[] = [];
  service.readPage = (request, signal) => {
    bounds.push(request.maxBytes);
    return readPage(request, signal);
  };
  expect(await listsAnything(service, probe, never)).toBe(listed);
  expect(bounds).toEqual([MIB]);
});

it('rejects when the service refuses to list anything', async () => {
  const service = new ModelService();
  service.readPage = async () => Promise.reject(new ModelFailure('http_400', 'hold'));
  await expect(listsAnything(service, probe, never)).rejects.toMatchObject({ kind: 'http_400' });
});

it('waits for memory while it receives a response that is read for its date, and requests it once', async () => {
  const service = new ModelService();
  service.feed.push(large());
  const clock = new VirtualClock();
  const store = new ModelStore(clock.monotonic);
  const budget = createMemoryBudget(3 * MIB);
  const page = await budget.enqueue('feed').reserve(2 * MIB, never);
  await budget.enqueue('background').reserve(MIB / 2, never);
  const date = readServiceDate(probe, 'background', engineContext({ service, budget, clock, store }), never);
  await turn();
  expect({ requests: service.requests.length, held: budget.reservedBytes }).toEqual({ requests: 1, held: 2.5 * MIB });
  page.release();
  await date;
  expect({ requests: service.requests.length, held: budget.reservedBytes }).toEqual({ requests: 1, held: MIB / 2 });
});
