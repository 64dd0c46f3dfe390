import { describe, expect, it } from 'vitest';
import type { FeedStore, PageCommit, PollOutcome } from '../../../src/sync/ports/index.js';
import { ModelService } from '../../simulation/model-service.js';
import { ModelStore } from '../../simulation/model-store.js';
import { silentObserver } from '../../support/engine.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { followFor } from '../../support/follow-for.js';
import { VirtualClock } from '../../support/virtual-clock.js';

const PAGE = 10;
const COMMIT_MS = 1_000;

/** Follows a feed of so many runs to its end, with a store that takes its time for every commit, and perhaps a slow service. */
async function followInto(options: { runs: number; over?: (n: number) => Fields; requestMs?: number }) {
  const { runs, over = () => ({}), requestMs = 0 } = options;
  const clock = new VirtualClock();
  const service = new ModelService({ before: () => clock.sleep(requestMs, new AbortController().signal) });
  service.feed.push(...Array.from({ length: runs }, (_, n) => entryJson({ scanId: `scan-${n}`, ...over(n) })));
  const model = new ModelStore(clock.monotonic);
  const commits: PageCommit[] = [];
  const commitPage = model.commitPage.bind(model);
  const store: FeedStore = Object.assign(model, {
    commitPage: async (commit: PageCommit) => {
      await clock.sleep(COMMIT_MS, new AbortController().signal);
      const outcome = await commitPage(commit);
      if (commit.batch.length > 0 || commit.quarantine.length > 0) commits.push(commit);
      return outcome;
    },
  });
  const polls: PollOutcome[] = [];
  const observer = silentObserver({ polled: (outcome) => polls.push(outcome) });
  await followFor(2 * (runs / PAGE + 2) * COMMIT_MS, clock, {
    service,
    store,
    observer,
    maxHeldPages: 10,
    maxPageCommits: 1,
  });
  return { commits, polls, stored: model.rows, feed: model.feeds.get('default') };
}

/** The number of pages in a commit, whose positions count entries. */
const pagesIn = ({ from, to }: PageCommit) => (Number(to) - Number(from)) / PAGE;
const pagesOf = (commits: readonly PageCommit[]) => commits.map(pagesIn);

describe('pages that are ready while the store is busy', () => {
  it('are committed together, five at most, with the cursor of the last', async () => {
    const { commits, stored, feed } = await followInto({ runs: 130 });
    expect(pagesOf(commits)).toEqual([1, 5, 5, 2]);
    expect(commits.map(({ from, to }) => `${from} to ${to}`)).toEqual([
      'null to 10',
      '10 to 60',
      '60 to 110',
      '110 to 130',
    ]);
    expect(stored.size).toBe(130);
    expect(feed).toMatchObject({ cursor: '130', endReachedAt: expect.any(Number) });
  });

  it('are counted as separate polls', async () => {
    const { polls } = await followInto({ runs: 130 });
    expect(polls.slice(0, 14)).toEqual([...Array(13).fill('entries'), 'end']);
  });

  it('prove freshness by the last delivery of all of them', async () => {
    const delivered = (n: number) => ({ deliveredAt: new Date(Date.UTC(2025, 0, 1) + n * 1_000).toISOString() });
    const { commits } = await followInto({ runs: 50, over: delivered });
    const last = commits.at(-1)?.freshness.lastDeliveredAt;
    expect(last).toEqual(new Date(delivered(49).deliveredAt));
  });

  it('are committed alone when an entry is quarantined or repaired', async () => {
    const over = (n: number) => {
      if (n === 35) return { status: 'archived' };
      return n === 75 ? { fileName: 'a\u0000b' } : {};
    };
    const { commits, stored } = await followInto({ runs: 110, over });
    expect(commits.map((commit) => [commit.from, pagesIn(commit)])).toEqual([
      [null, 1],
      ['10', 2],
      ['30', 1],
      ['40', 3],
      ['70', 1],
      ['80', 3],
    ]);
    expect(stored.size).toBe(109);
  });

  it('are committed alone when they are large', async () => {
    const large = () => ({ data: { text: 'x'.repeat(150_000) } });
    const { commits } = await followInto({ runs: 60, over: large });
    expect(pagesOf(commits)).toEqual([1, 1, 1, 1, 1, 1]);
  });
});

it('commits page by page while the store keeps up with the service', async () => {
  const { commits } = await followInto({ runs: 50, requestMs: COMMIT_MS });
  expect(pagesOf(commits)).toEqual([1, 1, 1, 1, 1]);
});
