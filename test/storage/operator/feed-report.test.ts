import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { entryJson } from '../../support/entries.js';
import { emptyTables, tables, useStore } from '../../support/store.js';

const setup = useStore();
const runsOf = async (countedAtMost?: number) =>
  (await setup.operatorStore.readFeedReports(countedAtMost)).map(({ feed, runs, runsEstimated }) => ({
    feed,
    runs,
    runsEstimated,
  }));

beforeEach(async () => {
  await emptyTables(setup, tables.feeds, tables.runs);
  for (const [name, scans] of [
    ["feed's", 4],
    ['other', 2],
  ] as const) {
    const feed = await setup.takeFeed({ name });
    await feed.commit(Array.from({ length: scans }, (_, n) => entryJson({ scanId: `${name}-${n}` })));
  }
});

describe('the number of runs of a feed', () => {
  it('is exact when the table is small', async () => {
    expect(await runsOf()).toEqual([
      { feed: "feed's", runs: 4, runsEstimated: false },
      { feed: 'other', runs: 2, runsEstimated: false },
    ]);
    expect(await runsOf(6)).toMatchObject([{ runsEstimated: false }, { runsEstimated: false }]);
  });

  it('is marked as an estimate when the table is too large to count', async () => {
    await setup.rows(sql`ANALYZE ${tables.runs}`);
    const feed = await setup.takeFeed({ name: 'other' });
    await feed.commit([entryJson({ scanId: 'since the statistics' })]);
    const reports = await runsOf(5);
    expect(reports).toMatchObject([
      { feed: "feed's", runsEstimated: true },
      { feed: 'other', runsEstimated: true },
    ]);
    // The planner scales by the size of the file, so this is approximate, but the larger feed is larger.
    expect(reports[0]?.runs).toBeGreaterThan(reports[1]?.runs ?? 0);
  });
});
