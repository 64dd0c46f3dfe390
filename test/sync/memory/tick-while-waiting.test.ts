import { expect, it } from 'vitest';
import { createLiveness } from '../../../src/observability/admin/liveness.js';
import { createRateLimit } from '../../../src/service/http/rate-limit.js';
import type { FeedContext } from '../../../src/sync/context.js';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import { createPageLimit } from '../../../src/sync/page/page-limit.js';
import type { FeedService } from '../../../src/sync/ports/index.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { silentObserver } from '../../support/engine.js';
import { entryJson } from '../../support/entries.js';
import { startFollowing } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const HOUR = 3_600_000;
const BUDGET = 1024 ** 2;
const NEVER = new Promise<never>(() => {});

interface Options {
  readonly entryBytes?: number;
  readonly over?: (service: ModelService) => Partial<FeedContext>;
}

/** Follows a feed of two pages with its liveness. The first page is expected to be large. */
function setUp({ entryBytes = 0, over = () => ({}) }: Options = {}) {
  const clock = new VirtualClock();
  const service = new ModelService();
  service.feed.push(
    ...Array.from({ length: 20 }, (_, n) => entryJson({ scanId: `scan-${n}`, data: 'x'.repeat(entryBytes) })),
  );
  const store = new ModelStore(clock.monotonic);
  const liveness = createLiveness(clock.monotonic);
  const budget = createMemoryBudget(BUDGET);
  const observer = silentObserver({ ticked: liveness.ticked });
  const pageLimit = createPageLimit(10, BUDGET);
  const parts = { service, store, observer, budget, pageLimit, stepMs: 1000, ...over(service) };
  const stop = startFollowing(clock, parts);
  const end = () => {
    return stop();
  };
  /** Lets an hour pass. Returns whether the loop was alive all the time. */
  const isAliveForAnHour = async () => {
    for (let passed = 0; passed < HOUR; passed += 5_000) {
      await clock.advance(5_000);
      if (!liveness.check().alive) return false;
    }
    return true;
  };
  return { budget, store, service, isAliveForAnHour, clock, end };
}

/** Takes all memory, as pages of other feeds that are being committed do. Returns what releases it. */
async function takeMemory(budget: FeedContext['budget']) {
  const ticket = budget.enqueue('feed');
  await ticket.reserve(BUDGET, new AbortController().signal);
  return () => ticket.close();
}

it('stays alive when a page waits for the memory of others for an hour', async () => {
  const { budget, store, isAliveForAnHour, clock, end } = setUp();
  const release = await takeMemory(budget);
  expect(await isAliveForAnHour()).toBe(true);
  expect(store.rows.size).toBe(0);
  release();
  await clock.advance(10_000);
  expect(store.rows.size).toBe(20);
  await end();
});

it('stays alive when a page waits for its turn within the rate limit for an hour', async () => {
  const { store, isAliveForAnHour, end } = setUp({
    over: (service) => {
      const limited = createRateLimit(0.000_001)(service);
      // The first slot is free.
      void limited.readRun('of another feed', { markdown: false }, new AbortController().signal).catch(() => {});
      return { service: limited };
    },
  });
  expect(await isAliveForAnHour()).toBe(true);
  expect(store.rows.size).toBe(0);
  await end();
});

const hangingRequest = (service: ModelService): Partial<FeedContext> => {
  const readPage: FeedService['readPage'] = () => NEVER;
  return { service: { readPage, readRun: service.readRun.bind(service) } };
};

it('is reported as hung when a request hangs', async () => {
  const { isAliveForAnHour } = setUp({ over: hangingRequest });
  expect(await isAliveForAnHour()).toBe(false);
});

it('is reported as hung when a commit hangs whose memory the next page waits for', async () => {
  const { budget, store, service, isAliveForAnHour } = setUp({ entryBytes: BUDGET / 16 });
  store.commitPage = async () => NEVER;
  expect(await isAliveForAnHour()).toBe(false);
  expect(service.requests).toHaveLength(1);
  expect(budget.reservedBytes).toBeGreaterThan(BUDGET / 2);
});
