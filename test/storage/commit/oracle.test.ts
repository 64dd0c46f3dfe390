import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OracleFeed, startOracleFeed } from '../../support/oracle-feed.js';
import { useStore } from '../../support/store.js';
import { syncToTheEnd } from '../../support/sync-to-the-end.js';

const SCANS = 2_000;
const DELIVERIES = 3_000;

const bench = useStore();
let feed: OracleFeed;

beforeAll(async () => {
  feed = await startOracleFeed(SCANS, DELIVERIES);
});
afterAll(() => feed.emulator.close());

it(`${DELIVERIES} deliveries of ${SCANS} scans in any order: the database equals what an independent oracle says`, async () => {
  const total = await syncToTheEnd(feed.emulator, bench.store, 'default');
  await feed.expectStored(bench);
  expect(total).toMatchObject({ inserted: SCANS, quarantined: 0, conflicts: 0 });
  expect(total.inserted + total.updated + total.unchanged + total.stale).toBe(DELIVERIES);
});
