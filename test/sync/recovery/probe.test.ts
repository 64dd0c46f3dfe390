import { expect, it } from 'vitest';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import { listsAnything, readServiceDate } from '../../../src/sync/recovery/probe.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelService } from '../../simulation/model-service.js';
import { entryJson } from '../../support/entries.js';

const filters = { status: ['completed', 'failed'], environment: 'prod', documentType: null } as const;
const probe = { filters, start: { beginning: true } } as const;
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

it('waits for memory for a response that is read for its date, and requests it again when it is preempted', async () => {
  const service = new ModelService();
  service.feed.push(large());
  const budget = createMemoryBudget(3 * MIB);
  const page = await budget.enqueue('feed').reserve(0, 'page', never);
  page.grow(2 * MIB);
  page.finish(2 * MIB);
  const readPage = service.readPage.bind(service);
  let tries = 0;
  let largest = 0;
  let gaveWay = () => {};
  const first = new Promise<void>((resolve) => {
    gaveWay = resolve;
  });
  service.readPage = async (request, signal) => {
    tries += 1;
    return readPage(request, signal).finally(() => {
      largest = Math.max(largest, budget.reservedBytes);
      gaveWay();
    });
  };
  const date = readServiceDate(probe, 'recent', { service, budget }, never);
  await first;
  expect(budget.reservedBytes).toBe(2 * MIB);
  page.release();
  await date;
  expect({ tries, held: budget.reservedBytes, counted: largest > 2 * MIB }).toEqual({
    tries: 2,
    held: 0,
    counted: true,
  });
});
