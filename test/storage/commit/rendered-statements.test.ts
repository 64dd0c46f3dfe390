import { setImmediate as sleepOnce } from 'node:timers/promises';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import { createCommits } from '../../../src/storage/commit/commit-page.js';
import { createQuarantine } from '../../../src/storage/commit/quarantine.js';
import { createDatabaseClock } from '../../../src/storage/connection/database-clock.js';
import { tablesOf } from '../../../src/storage/tables/schema.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../../src/sync/ports/index.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { checkedPage } from '../../support/pages.js';
import { claimNothing } from '../../support/store.js';

/*
 * The statements of commits as PostgreSQL receives them, to be read from top to bottom. In the source, the texts of the entries and of
 * the rules for several sources of a run are apart, because all commits share them.
 */

const statements: string[] = [];
const db = new Kysely<unknown>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
  log: ({ query }) => void statements.push(query.sql),
});
const tables = tablesOf('scanfeed');
const monotonic = () => 0;
const settings = {
  ...{ pendingRetryMs: 30_000, keptDays: null, monotonic },
  databaseClock: createDatabaseClock(monotonic),
};
const commits = createCommits({ db, tables }, settings);
const commitsOfManyFeeds = createCommits(
  { db, tables },
  { ...settings, batching: { waitMs: () => 1, sleep: () => sleepOnce() } },
);

const lease = { feed: 'default', holder: 'host/1/a', epoch: 1, filtersBefore: null };
const move = { lease, from: 'a', to: 'b', freshness: claimNothing() };
const { entries, quarantine } = checkedPage(pageJson([entryJson(), 'null']));
const batch = batchOf(entries);
const repeated = batchOf(checkedPage(pageJson([entryJson(), entryJson()])).entries);
const empty = { batch: batchOf([]), quarantine: [] };
const atEnd = { ...move, ...empty, to: 'a' };
const pass = {
  ...{ id: '1', begunAt: new Date(0), until: new Date(0), end: 'no' as const },
  ...{ feedOrigin: null, deliveredUpTo: null, entries: 2, pace: null, cachedAt: null },
};

test.each([
  ['feed-page', 'A page of the feed', () => commits.commitPage({ ...move, batch, quarantine })],
  ['end-of-feed', 'A page without entries, whose cursor does not move', () => commits.commitPage(atEnd)],
  ['empty-pages', 'Pages without entries of several feeds', () => commitTogether(atEnd, { ...move, ...empty })],
  [
    'pass-page',
    'A page of a pass that lists a scan twice',
    () => commits.commitPass({ ...move, ...pass, batch: repeated, quarantine }),
  ],
  ['loaded-result', 'A result that was loaded on its own', () => commits.commitResults(lease, batch)],
  [
    'quarantined-before',
    'The unusable entries of a page that are in quarantine already',
    () => createQuarantine({ db, tables }).notYetQuarantined('default', quarantine),
  ],
])('sends the statement of %s.sql', async (name, title, send) => {
  const [statement] = await statementsOf(send);
  await expect(`-- ${title}.\n${statement}\n`).toMatchFileSnapshot(`statements/${name}.sql`);
});

test('tries entries with the statement of loaded-result.sql', async () => {
  const [statement] = await statementsOf(() => commits.commitResults(lease, batch));
  expect(await statementsOf(() => commits.tryEntries(lease, batch))).toEqual([
    "SET LOCAL idle_in_transaction_session_timeout = '5s'",
    statement,
    'SET CONSTRAINTS ALL IMMEDIATE',
  ]);
});

function commitTogether(...pages: readonly PageCommit[]): Promise<unknown> {
  return Promise.all(pages.map((page) => commitsOfManyFeeds.commitPage(page)));
}

async function statementsOf(send: () => Promise<unknown>): Promise<readonly string[]> {
  statements.length = 0;
  await send();
  return statements.map((statement) => statement.trim());
}
