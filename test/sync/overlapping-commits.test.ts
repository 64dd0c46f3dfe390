import { describe, expect, it } from 'vitest';
import { createMemoryBudget } from '../../src/sync/memory/memory-budget.js';
import type { CommitOutcome, PageCommit, PollOutcome } from '../../src/sync/ports/index.js';
import { ModelFailure } from '../simulation/model-failure.js';
import { ModelService } from '../simulation/model-service.js';
import { ModelStore } from '../simulation/model-store.js';
import { silentObserver } from '../support/engine.js';
import { entryJson, type Fields } from '../support/entries.js';
import { startFollowing } from '../support/follow-for.js';
import { VirtualClock } from '../support/virtual-clock.js';

const PAGE = 10;
const LAST = new AbortController().signal;

interface Options {
  readonly pages: number;
  readonly over?: (n: number) => Fields;
  /** How long a commit takes to arrive at the database, milliseconds; called for each. */
  readonly arrivesAfterMs: (commit: PageCommit) => number;
  /** Called when it arrives. A commit that throws is not executed. */
  readonly arrives?: (commit: PageCommit, reservedBytes: number) => void;
  /** Called once it is executed. The answer to a commit that throws is lost. */
  readonly executed?: (commit: PageCommit) => void;
  /** Called when a report on a page is stored. */
  readonly reported?: () => void;
}

/** Follows a feed to its end. Returns what happened to the commits: `0 sent`, `0 committed`, `10 fenced` by their positions. */
async function follow(options: Options) {
  const { pages, over = () => ({}), arrivesAfterMs, arrives = () => {}, executed = () => {} } = options;
  const { reported = () => {} } = options;
  const clock = new VirtualClock();
  const service = new ModelService();
  for (let n = 0; n < pages * PAGE; n += 1) service.feed.push(entryJson({ scanId: `scan-${n}`, ...over(n) }));
  const store = new ModelStore(clock.monotonic);
  const budget = createMemoryBudget(64 * 1024 * 1024);
  const events: string[] = [];
  const execute = store.commitPage.bind(store);
  store.commitPage = async (commit): Promise<CommitOutcome> => {
    if (commit.batch.length === 0) return execute(commit);
    const from = commit.from ?? '0';
    events.push(`${from} sent`);
    await clock.sleep(arrivesAfterMs(commit), LAST);
    arrives(commit, budget.reservedBytes);
    const outcome = await execute(commit);
    events.push(`${from} ${outcome.kind}`);
    executed(commit);
    return outcome;
  };
  const storeStuck = store.storeStuck.bind(store);
  store.storeStuck = async (...given) => {
    reported();
    return storeStuck(...given);
  };
  const polls: PollOutcome[] = [];
  const failures: unknown[] = [];
  let inserted = 0;
  const observer = silentObserver({
    polled: (outcome) => polls.push(outcome),
    committed: (counts) => {
      inserted += counts.inserted;
    },
    failed: (_, error) => failures.push(error),
  });
  const stop = startFollowing(clock, { service, store, budget, observer });
  while (store.feeds.get('default')?.endReachedAt == null) await clock.advance(10);
  await stop();
  expect(budget.reservedBytes).toBe(0);
  return { events, requests: service.requests.length, polls, failures, inserted, stored: store.rows.size };
}

describe('the commit of a page', () => {
  it('begins while the one before runs, and is the only one to do so', async () => {
    const { events, stored } = await follow({ pages: 4, arrivesAfterMs: () => 100 });
    expect(events.slice(0, 4)).toEqual(['0 sent', '10 sent', '0 committed', '20 sent']);
    expect(stored).toBe(40);
  });

  it('is repeated, and not read again, when it arrives before the one before', async () => {
    const arrivesAfterMs = ({ from }: PageCommit) => (from === '10' ? 10 : 100);
    const { events, requests, polls, failures, stored } = await follow({ pages: 2, arrivesAfterMs });
    expect(events).toEqual(['0 sent', '10 sent', '10 fenced', '0 committed', '10 sent', '10 committed']);
    expect(requests).toBe(3);
    expect(polls).toEqual(['entries', 'entries', 'end']);
    expect(failures).toEqual([]);
    expect(stored).toBe(20);
  });

  it.each(['serialization', 'deadlock', 'lock_timeout', 'cancelled', 'resources', 'pool_exhausted'])(
    'is repeated alone, and not read again, when it fails with %s because of the one before',
    async (kind) => {
      let failures = 1;
      const result = await follow({
        pages: 2,
        arrivesAfterMs: ({ from }) => (from === '10' ? 10 : 100),
        arrives: ({ from }) => {
          if (from === '10' && failures-- > 0) throw new ModelFailure(kind);
        },
      });
      expect(result.events).toEqual(['0 sent', '10 sent', '0 committed', '10 sent', '10 committed']);
      expect(result.failures).toEqual([]);
      expect(result.stored).toBe(20);
    },
  );

  it('fails, and is read again, when its outcome is unknown', async () => {
    let failures = 1;
    const result = await follow({
      pages: 2,
      arrivesAfterMs: ({ from }) => (from === '10' ? 10 : 100),
      arrives: ({ from }) => {
        if (from === '10' && failures-- > 0) throw new ModelFailure('connection');
      },
    });
    expect(result.failures).toEqual([new ModelFailure('connection')]);
    expect(result.stored).toBe(20);
  });

  it('is repeated with its page when the one before fails', async () => {
    let failures = 1;
    const result = await follow({
      pages: 2,
      arrivesAfterMs: ({ from }) => (from === '10' ? 100 : 10),
      arrives: ({ from }) => {
        if (from === null && failures-- > 0) throw new ModelFailure('connection');
      },
    });
    expect(result.events.slice(0, 4)).toEqual(['0 sent', '10 sent', '10 fenced', '0 sent']);
    expect(result.failures).toEqual([new ModelFailure('connection')]);
    expect(result.stored).toBe(20);
  });

  it('keeps its memory reserved when the one before fails', async () => {
    let failures = 1;
    const reserved: number[] = [];
    await follow({
      pages: 2,
      arrivesAfterMs: ({ from }) => (from === '10' ? 100 : 10),
      arrives: ({ from }, bytes) => {
        if (from === '10') reserved.push(bytes);
        else if (failures-- > 0) throw new ModelFailure('connection');
      },
    });
    expect(reserved[0]).toBeGreaterThan(0);
  });

  it('is reported when it succeeds and the answer to the one before is lost', async () => {
    let failures = 1;
    const result = await follow({
      pages: 2,
      arrivesAfterMs: ({ from }) => (from === '10' ? 100 : 10),
      executed: ({ from }) => {
        if (from === null && failures-- > 0) throw new ModelFailure('connection');
      },
    });
    expect(result.events).toEqual(['0 sent', '10 sent', '0 committed', '10 committed']);
    expect(result.failures).toEqual([new ModelFailure('connection')]);
    expect(result).toMatchObject({ inserted: 10, stored: 20, polls: ['entries', 'failed', 'end'] });
  });

  it('is reported when the report on the one before fails', async () => {
    let failures = 1;
    const result = await follow({
      pages: 2,
      arrivesAfterMs: ({ from }) => (from === '10' ? 100 : 10),
      reported: () => {
        if (failures-- > 0) throw new ModelFailure('connection');
      },
    });
    expect(result.failures).toEqual([new ModelFailure('connection')]);
    expect(result).toMatchObject({ inserted: 20, stored: 20, polls: ['entries', 'entries', 'failed', 'end'] });
  });

  it('does not begin before the one before has ended when either page has an entry for the quarantine', async () => {
    const over = (n: number) => (n === 15 ? { status: 'archived' } : {});
    const { events, stored } = await follow({ pages: 3, over, arrivesAfterMs: () => 100 });
    const order = ['0 sent', '0 committed', '10 sent', '10 committed', '20 sent', '20 committed'];
    expect(events).toEqual(order);
    expect(stored).toBe(29);
  });
});
