import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { ServiceClient } from '../../../src/service/client.js';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import type { Freshness } from '../../../src/sync/ports/index.js';
import { syncFeed } from '../../../src/sync/sync-feed.js';
import { ModelStore } from '../../simulation/model-store.js';
import { engineContext, silentObserver } from '../../support/engine.js';
import { type LineConfig, startSlowLine } from '../../support/slow-line.js';

const MB = 1_000_000;
const BUDGET = MB;

interface Reading extends Omit<LineConfig, 'announced' | 'bytesPerSecond'> {
  readonly feeds: number;
}

/** Reads the feeds with one budget until everything is stored. Returns what was sent, and the most that was reserved. */
async function read({ feeds, ...config }: Reading, announced: boolean) {
  const line = await startSlowLine({ ...config, announced, bytesPerSecond: 100 * MB });
  onTestFinished(line.close);
  const budget = createMemoryBudget(BUDGET);
  const stop = new AbortController();
  let reserved = 0;
  /** Claims made while runs were missing that all the feeds list. */
  const early: Date[] = [];
  const follow = async () => {
    const service = new ServiceClient({ baseUrl: line.url, apiKey: 'key' });
    const store = new ModelStore(systemClock.now, { monotonic: systemClock.monotonic });
    const isComplete = () =>
      store.rows.size === config.runs && [...store.rows.values()].every(({ pending }) => pending === null);
    const stored = new Promise<void>((resolve) => {
      const committed = () => {
        reserved = Math.max(reserved, budget.reservedBytes);
        if (isComplete()) resolve();
      };
      const freshness = ({ dataCompleteAsOf }: Freshness) => {
        if (dataCompleteAsOf !== null && store.rows.size < config.runs) early.push(dataCompleteAsOf);
      };
      const observer = silentObserver({ committed, freshness });
      const parts = { service, store, budget, observer, clock: systemClock };
      void syncFeed(engineContext(parts), stop.signal);
    });
    await stored;
    return service;
  };
  const services = await Promise.all(Array.from({ length: feeds }, follow));
  const traffic = { ...line.traffic, reserved };
  stop.abort();
  await Promise.all(services.map((service) => service.close()));
  expect(early).toEqual([]);
  return traffic;
}

describe('responses that do not announce their length', () => {
  it.each([
    ['pages of many feeds', { feeds: 8, runs: 30, resultBytes: 30_000, truncated: false }],
    [
      'results that are larger than a part of the budget',
      { feeds: 1, runs: 20, resultBytes: 450_000, truncated: true },
    ],
    ['results that exceed the budget', { feeds: 1, runs: 6, resultBytes: 1_125_000, truncated: true }],
  ])('cost hardly more than those that do: %s', async (_, reading) => {
    const announced = await read(reading, true);
    const chunked = await read(reading, false);
    expect(chunked.bytes / announced.bytes).toBeLessThan(1.2);
    expect(chunked.requests / announced.requests).toBeLessThan(1.2);
    expect(chunked.reserved).toBeLessThan(BUDGET + 1_250_000);
  });
});
