import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import type { CheckedPage } from '../../../src/sync/page/page.js';
import type { CommitOutcome } from '../../../src/sync/ports/index.js';
import { Breaker } from '../../../src/sync/writer/breaker.js';
import { PageWriter } from '../../../src/sync/writer/write-pages.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { ModelStore } from '../../simulation/model-store.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { checkedPage } from '../../support/pages.js';
import { claimNothing } from '../../support/store.js';

const lease = { feed: 'default', holder: 'test', epoch: 1, filtersBefore: null };
const COMMITTED: CommitOutcome = {
  kind: 'committed',
  counts: { inserted: 1, updated: 0, filled: 0, unchanged: 0, stale: 0, quarantined: 0, conflicts: 0, stored: [] },
  asOf: { readAt: 0, dataCompleteAsOf: null, lagMs: null },
  endClaimed: false,
};

/** Writes pages 0, 1, … of a source, whose commits end when and how the test says. */
function writing(pages: number, options: { readonly unusableOn?: number; readonly readFails?: boolean } = {}) {
  const events: string[] = [];
  const commits = new Map<number, PromiseWithResolvers<CommitOutcome>>();
  let taken = 0;
  let isStopped = false;
  const pageAt = (n: number): CheckedPage => {
    const entries = [entryJson({ scanId: `scan-${n}` }), ...(n === options.unusableOn ? ['null'] : [])];
    const at = { at: { cursor: `${n}`, since: null }, next: `${n + 1}` };
    return { ...checkedPage(pageJson(entries), at), release: () => events.push(`${n} released`) };
  };
  const source = {
    isStopped: () => isStopped,
    stop: () => {
      isStopped = true;
    },
    take: async () => {
      if (isStopped) return null;
      if (taken === pages && options.readFails) throw new Error('the reader failed');
      taken += 1;
      return taken > pages ? null : pageAt(taken - 1);
    },
  };
  const target = {
    ...{ lease, breaker: new Breaker(), maxCommits: 2 },
    moveBy: ({ at: { cursor: from }, next: to }: CheckedPage) => ({ lease, from, to, freshness: claimNothing() }),
  };
  const store = new ModelStore(() => 0);
  store.commitPage = ({ from }) => {
    events.push(`${from} sent`);
    const commit = withResolvers<CommitOutcome>();
    commits.set(Number(from), commit);
    return commit.promise;
  };
  const givenOut = async () => {
    const context = { store, clock: systemClock };
    for await (const page of new PageWriter(source, target, context, new AbortController().signal).write()) {
      events.push(page.kind === 'fenced' ? 'fenced given out' : `${page.at.cursor} given out`);
    }
  };
  const ended = givenOut().then(
    () => events.push('end'),
    (error: Error) => events.push(error.message),
  );
  /** Ends commits in this order, and waits for what follows. */
  const end = async (...ends: readonly (readonly [n: number, outcome: CommitOutcome | Error])[]) => {
    await turn();
    for (const [n, outcome] of ends) {
      if (outcome instanceof Error) commits.get(n)?.reject(outcome);
      else commits.get(n)?.resolve(outcome);
      await turn();
    }
  };
  return { events, ended, end, stop: source.stop };
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let settle: Omit<PromiseWithResolvers<T>, 'promise'> = { resolve: () => {}, reject: () => {} };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

const lost = new ModelFailure('connection', 'retry');

describe('pages', () => {
  it('are given out in order when the commit of the second ends first, and two commits overlap at most', async () => {
    const { events, ended, end } = writing(3);
    await end([1, COMMITTED]);
    expect(events).toEqual(['0 sent', '1 sent']);
    await end([0, COMMITTED], [2, COMMITTED]);
    await ended;
    expect(events.filter((event) => !event.endsWith('released'))).toEqual([
      ...['0 sent', '1 sent', '0 given out', '1 given out', '2 sent', '2 given out', 'end'],
    ]);
  });

  it('are released once they are committed, before they are given out', async () => {
    const { events, ended, end } = writing(1);
    await end([0, COMMITTED]);
    await ended;
    expect(events).toEqual(['0 sent', '0 released', '0 given out', 'end']);
  });

  it('are committed after those before were given out when an entry is unusable', async () => {
    const { events, ended, end } = writing(2, { unusableOn: 1 });
    await end([0, COMMITTED], [1, COMMITTED]);
    await ended;
    expect(events.filter((event) => !event.endsWith('released'))).toEqual([
      ...['0 sent', '0 given out', '1 sent', '1 given out', 'end'],
    ]);
  });

  it('are sent again after the page before when they arrived first', async () => {
    const { events, ended, end } = writing(2);
    await end([1, { kind: 'fenced' }], [0, COMMITTED], [1, COMMITTED]);
    await ended;
    expect(events.filter((event) => event.startsWith('1'))).toEqual([
      ...['1 sent', '1 sent', '1 released', '1 given out'],
    ]);
  });

  it('are given out before the error of the reader is thrown', async () => {
    const { events, ended, end } = writing(1, { readFails: true });
    await end([0, COMMITTED]);
    await ended;
    expect(events.slice(-2)).toEqual(['0 given out', 'the reader failed']);
  });

  it('are given out when they were committed although the answer to the page before was lost', async () => {
    const { events, ended, end } = writing(3);
    await end([0, lost], [1, COMMITTED]);
    await ended;
    expect(events.filter((event) => !event.endsWith('released'))).toEqual([
      ...['0 sent', '1 sent', '1 given out', lost.message],
    ]);
  });

  it('are not committed once the source is stopped', async () => {
    const { events, ended, end, stop } = writing(5);
    await turn();
    stop();
    await end([0, COMMITTED], [1, COMMITTED]);
    await ended;
    expect(events.filter((event) => !event.endsWith('released'))).toEqual([
      ...['0 sent', '1 sent', '0 given out', '1 given out', 'end'],
    ]);
  });

  it('are not committed when the source is stopped while they wait for the page before', async () => {
    const { events, ended, end, stop } = writing(2, { unusableOn: 1 });
    await turn();
    stop();
    await end([0, COMMITTED]);
    await ended;
    expect(events).toEqual(['0 sent', '0 released', '0 given out', 'end']);
  });
});

it('throws the error of a commit, not that of the reader, which may be about a later cursor', async () => {
  const { events, ended, end } = writing(1, { readFails: true });
  await turn();
  await end([0, lost]);
  await ended;
  expect(events.at(-1)).toBe(lost.message);
});

it('gives out a fenced page, and the fenced one that overlaps it', async () => {
  const { events, ended, end } = writing(2);
  await end([0, { kind: 'fenced' }], [1, { kind: 'fenced' }]);
  await ended;
  expect(events.filter((event) => !event.endsWith('released'))).toEqual([
    ...['0 sent', '1 sent', 'fenced given out', 'fenced given out', 'end'],
  ]);
});
