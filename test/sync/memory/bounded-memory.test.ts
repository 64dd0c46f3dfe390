import { describe, expect, it } from 'vitest';
import type { CommitCounts } from '../../../src/core/counts.js';
import { createMemoryBudget } from '../../../src/sync/memory/memory-budget.js';
import type { PageCommit, SyncObserver } from '../../../src/sync/ports/index.js';
import { ModelFailure, ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { silentObserver } from '../../support/engine.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { followFor } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const RUN_BYTES = 1_000;

/** An entry of about this many bytes. */
const entry = (n: number, over: Fields = {}) => {
  const fields = { scanId: `scan-${n}`, data: { text: '' }, ...over };
  return entryJson({ ...fields, fileName: '.'.repeat(Math.max(0, RUN_BYTES - entryJson(fields).length)) });
};
const truncated = (n: number) => entryJson({ scanId: `scan-${n}`, data: undefined, resultTruncated: true });

function setUp(budgetBytes: number, pageSize = 20) {
  const clock = new VirtualClock();
  const service = new ModelService();
  const store = new ModelStore(clock.monotonic);
  const budget = createMemoryBudget(budgetBytes);
  const commits: PageCommit[] = [];
  const counted: CommitCounts[] = [];
  const failures: string[] = [];
  let largest = 0;
  const commitPage = store.commitPage.bind(store);
  store.commitPage = async (commit) => {
    largest = Math.max(largest, budget.reservedBytes);
    commits.push(commit);
    return commitPage(commit);
  };
  const observer: Partial<SyncObserver> = {
    committed: (counts) => counted.push(counts),
    failed: (stage, error) => failures.push(`${stage} ${(error as Error).message}`),
  };
  const follow = async (ms: number) => {
    await followFor(ms, clock, { service, store, budget, observer: silentObserver(observer), pageSize });
  };
  const limits = () => service.requests.flatMap((request) => (typeof request === 'string' ? [] : [request.limit]));
  const downloads = () => service.requests.filter((request) => typeof request === 'string').length;
  const inserted = () => counted.reduce((sum, counts) => sum + counts.inserted, 0);
  const held = () => ({ largest, now: budget.reservedBytes });
  return { clock, service, store, commits, counted, failures, follow, limits, downloads, inserted, held };
}

describe('a page that is too large for the budget', () => {
  it('is requested with half as many entries, and the limit grows back when pages are small', async () => {
    const { service, store, follow, limits, held } = setUp(6 * RUN_BYTES);
    service.feed.push(...Array.from({ length: 40 }, (_, n) => entry(n)));
    const small = (n: number) => entryJson({ scanId: `small-${n}`, data: undefined, status: 'failed' });
    service.feed.push(
      ...Array.from({ length: 100 }, (_, n) => small(n).replace(/"fileName":"[^"]*"/, '"fileName":""')),
    );
    await follow(5_000);
    expect(limits().slice(0, 3)).toEqual([20, 10, 5]);
    expect(store.rows.size).toBe(140);
    expect(held().largest).toBeLessThanOrEqual(6 * RUN_BYTES);
    expect(held().now).toBe(0);
  });

  it('holds the feed and reports it when it has only one entry', async () => {
    const { service, store, failures, follow, limits } = setUp(6 * RUN_BYTES, 4);
    service.feed.push(entry(0));
    service.readPage = async (request) => {
      service.requests.push(request);
      throw new ModelFailure('too_large', 'hold');
    };
    await follow(60_000);
    expect(limits().slice(0, 3)).toEqual([4, 2, 1]);
    expect(failures[0]).toMatch(/^feed one entry of the feed makes a page of more than 256 MiB/);
    expect(store.feeds.get('default')).toMatchObject({ cursor: null, lastCommitAt: null });
  });
});

describe.each(['too_many_values', 'too_many_entries'])('a page of %s', (kind) => {
  it('is requested with half as many entries until it fits', async () => {
    const { service, store, follow, limits } = setUp(64 * RUN_BYTES, 4);
    service.feed.push(...Array.from({ length: 4 }, (_, n) => entry(n)));
    const readPage = service.readPage.bind(service);
    service.readPage = async (request, signal) => {
      const page = await readPage(request, signal);
      if (request.limit > 2) throw new ModelFailure(kind, 'hold');
      return page;
    };
    await follow(1_000);
    expect(limits().slice(0, 3)).toEqual([4, 2, 2]);
    expect(store.rows.size).toBe(4);
  });

  it('holds the feed with its own error when one entry was requested', async () => {
    const { service, failures, follow, limits } = setUp(64 * RUN_BYTES, 4);
    service.readPage = async (request) => {
      service.requests.push(request);
      throw new ModelFailure(kind, 'hold');
    };
    await follow(60_000);
    expect(limits().slice(0, 4)).toEqual([4, 2, 1, 1]);
    expect(failures[0]).toBe(`feed ${kind}`);
  });
});

describe('results that are more than the budget', () => {
  const COUNT = 12;
  /** Fits the page and three of its results. */
  const BUDGET = 8 * RUN_BYTES;

  function largeResults() {
    const made = setUp(BUDGET);
    for (let n = 0; n < COUNT; n += 1) {
      made.service.feed.push(truncated(n));
      made.service.runs.set(`scan-${n}`, entry(n));
    }
    return made;
  }

  it('are left pending by the commit of their page, and loaded right after it', async () => {
    const { store, commits, counted, follow, inserted, held } = largeResults();
    await follow(1_000);
    expect([...store.rows.values()].filter(({ pending }) => pending !== null)).toEqual([]);
    const pages = commits.filter(({ batch }) => batch.length > 0);
    expect(pages.map(({ to }) => to)).toEqual([`${COUNT}`]);
    expect(inserted()).toBe(COUNT);
    expect(counted.reduce((sum, { filled }) => sum + filled, 0)).toBeGreaterThan(3);
    expect(held().largest).toBeLessThanOrEqual(BUDGET);
    expect(held().now).toBe(0);
  });

  it('are not downloaded again once they are stored, although the commit of their page failed', async () => {
    const { store, follow, inserted, downloads, failures } = largeResults();
    const commitPage = store.commitPage.bind(store);
    let commits = 0;
    store.commitPage = async (commit) => {
      commits += 1;
      if (commits === 1) throw new ModelFailure('connection');
      return commitPage(commit);
    };
    await follow(30_000);
    expect(failures).toHaveLength(1);
    expect([...store.rows.values()].filter(({ pending }) => pending !== null)).toEqual([]);
    expect(inserted()).toBe(COUNT);
    // Each once, those of the page that failed again, and a few that met a budget that was used up.
    expect(downloads()).toBeLessThan(3 * COUNT);
  });

  it('are loaded one at a time when each exceeds the budget', async () => {
    const { service, store, follow, held } = largeResults();
    for (let n = 0; n < COUNT; n += 1) service.runs.set(`scan-${n}`, entry(n, { error: '.'.repeat(BUDGET) }));
    await follow(2_000);
    expect([...store.rows.values()].filter(({ pending }) => pending === null)).toHaveLength(COUNT);
    expect(held().largest).toBeLessThan(BUDGET + 8 * RUN_BYTES);
    expect(held().now).toBe(0);
  });

  it('of several pages are committed in the order of the feed', async () => {
    const { service, store, commits, follow } = setUp(5 * RUN_BYTES, 5);
    for (let n = 0; n < 30; n += 1) {
      service.feed.push(truncated(n));
      service.runs.set(`scan-${n}`, entry(n));
    }
    await follow(3_000);
    expect([...store.rows.values()].filter(({ pending }) => pending !== null)).toEqual([]);
    const cursors = [...new Set(commits.flatMap(({ to }) => (to === null ? [] : [Number(to)])))];
    expect(cursors).toEqual([5, 10, 15, 20, 25, 30]);
  });
});

it.each(['too_large', 'too_many_values'])('keeps a result that is %s pending as too large', async (kind) => {
  const { service, store, follow } = setUp(64 * RUN_BYTES);
  service.feed.push(truncated(0));
  service.readRun = async () => Promise.reject(new ModelFailure(kind, 'hold'));
  await follow(1_000);
  expect(store.rows.get('scan-0')?.pending).toBe('too_large');
});
