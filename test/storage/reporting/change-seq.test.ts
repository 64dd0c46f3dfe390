import { sql } from 'kysely';
import { expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { entryJson } from '../../support/entries.js';
import { useDatabase } from '../../support/postgres/index.js';
import { MIGRATED, openTestDatabase, TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const bench = useStore(given);
const FEEDS = ['north', 'south', 'west'];
const PAGES = 40;
const PAST = '2020-01-01T00:00:00Z';

interface Change {
  readonly change_seq: string;
  readonly scan_id: string;
  readonly revision: number | null;
}

/** Reads the changes since a number in their order, like a reader of the reports. */
const changesAfter = (last: string) => sql<Change>`
  SELECT change_seq::text, scan_id, revision FROM (
    SELECT change_seq, scan_id, revision FROM scanfeed_reporting.runs
    UNION ALL SELECT change_seq, scan_id, NULL FROM scanfeed_reporting.deleted_runs
  ) AS change WHERE change_seq > ${last}::bigint ORDER BY change.change_seq`;

/** Writes new runs and corrections of other writers' runs over a separate connection. */
async function write(name: string): Promise<void> {
  const database = openTestDatabase(given.url, 1);
  const settings = { schema: TEST_SCHEMA, leaseTtlMs: 30_000, pendingRetryMs: 30_000, keptDays: null };
  const store = createStore(database, { ...settings, monotonic: () => performance.now() });
  const feed = await takeFeed(store, testFeed({ name }), name);
  for (let page = 1; page <= PAGES; page += 1) {
    await feed.commit([
      entryJson({ scanId: `${name}-${page}` }),
      entryJson({ scanId: `${name}-old-${page}`, completedAt: PAST, deliveredAt: PAST }),
      ...Array.from({ length: 5 }, (_, n) => entryJson({ scanId: `shared-${n}`, revision: page })),
    ]);
  }
  await database.close();
}

async function remove(writing: { done: boolean }): Promise<void> {
  while (!writing.done) await bench.operatorStore.deletedRuns.purgeRuns(365, 7);
}

it('a reader misses no change when it continues after the highest number while several writers commit', async () => {
  const reader = openTestDatabase(given.url, 1);
  const copy = new Map<string, number>();
  let last = '0';
  let polls = 0;
  const poll = async () => {
    const { rows } = await changesAfter(last).execute(reader.sql);
    for (const { change_seq, scan_id, revision } of rows) {
      if (revision === null) copy.delete(scan_id);
      else copy.set(scan_id, revision);
      last = change_seq;
    }
    polls += 1;
  };
  const writing = { done: false };
  const read = async () => {
    while (!writing.done) await poll();
  };
  const reading = Promise.all([read(), remove(writing)]);
  await Promise.all(FEEDS.map(write));
  writing.done = true;
  await reading;
  await bench.operatorStore.deletedRuns.erase(['shared-0']);
  await poll();
  await reader.close();
  const rows = await bench.rows(
    sql<{ scan_id: string; revision: number }>`SELECT scan_id, revision FROM ${tables.runs}`,
  );
  expect(Object.fromEntries(copy)).toEqual(Object.fromEntries(rows.map((row) => [row.scan_id, row.revision])));
  expect(copy.has('shared-0')).toBe(false);
  expect(copy.get('shared-1')).toBe(PAGES);
  expect(polls).toBeGreaterThan(10);
});
