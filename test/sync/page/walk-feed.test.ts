import { expect, it } from 'vitest';
import { type Step, walkFeed } from '../../../src/sync/page/walk-feed.js';
import type { FeedRequest } from '../../../src/sync/ports/index.js';
import { ModelFailure } from '../../simulation/model-failure.js';
import { filteredFeed, withoutCursorAtEnd } from '../../support/filtered-feed.js';
import { DEFAULT_FILTERS } from '../../support/filters.js';

/**
 * Walks a feed of six runs, of which the second and the fifth are of the test environment.
 * @param lateAt the step before which another run is delivered
 */
async function walk(nextCursor: Parameters<typeof filteredFeed>[0], steps: number, pageSize = 3, lateAt?: number) {
  const { clock, deliver, service } = filteredFeed(nextCursor);
  deliver(6);
  const read = { filters: DEFAULT_FILTERS, markdown: false, pageSize };
  const next = walkFeed({ cursor: null, since: null }, { service, read, clock }, new AbortController().signal);
  const taken: Step[] = [];
  const takeAll = async () => {
    while (taken.length < steps) {
      if (taken.length === lateAt) deliver(1);
      taken.push(await next());
    }
  };
  await clock.run(takeAll());
  return taken.map(({ page: { items }, next: follows }) => [items, follows]);
}

it('finds the end when the position after the last page lists nothing', async () => {
  expect(await walk((place) => `${place}`, 3)).toEqual([
    [2, 'more'],
    [2, 'more'],
    [0, 'end'],
  ]);
});

it('finds the end when a short last page without a cursor is listed again', async () => {
  expect(await walk(withoutCursorAtEnd, 3, 4)).toEqual([
    [3, 'more'],
    [1, 'unclear'],
    [1, 'end'],
  ]);
});

it('continues when a short last page without a cursor lists more the second time', async () => {
  expect(await walk(withoutCursorAtEnd, 4, 4, 2)).toEqual([
    [3, 'more'],
    [1, 'unclear'],
    [2, 'unclear'],
    [2, 'end'],
  ]);
});

it('finds the end when the last page is full and has no cursor', async () => {
  expect(await walk(withoutCursorAtEnd, 3)).toEqual([
    [2, 'more'],
    [2, 'stuck'],
    [2, 'end'],
  ]);
});

it('continues when the filters empty a page in the middle', async () => {
  expect(await walk((place) => `${place}`, 3, 1)).toEqual([
    [1, 'more'],
    [0, 'more'],
    [1, 'more'],
  ]);
});

it('is stuck when the cursors go in circles', async () => {
  const circling = (place: number) => (place === 6 ? '3' : `${place}`);
  expect(await walk(circling, 3)).toEqual([
    [2, 'more'],
    [2, 'stuck'],
    [2, 'stuck'],
  ]);
});

it('requests fewer entries when a response is too large', async () => {
  const tooLarge = (place: number, _end: number, { limit }: FeedRequest) => {
    if (limit > 1) throw new ModelFailure('too_large', 'hold');
    return `${place}`;
  };
  expect(await walk(tooLarge, 2)).toEqual([
    [1, 'more'],
    [0, 'more'],
  ]);
});
