import { beforeAll, expect, test } from 'vitest';
import { entryJson } from '../../support/entries.js';
import { VARIOUS_FILTERS } from '../../support/filters.js';
import { useStore } from '../../support/store.js';

const setup = useStore();

beforeAll(async () => {
  const feed = await setup.takeFeed();
  await feed.commit([entryJson()]);
});

test.each(VARIOUS_FILTERS)('counts a run of the feed when its filters list it: %s', async (_, filters, isListed) => {
  const range = { since: new Date(0), until: null };
  expect(await setup.operatorStore.countRuns('default', range, filters)).toBe(isListed ? 1 : 0);
});
