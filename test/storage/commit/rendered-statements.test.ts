import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import { createCommits } from '../../../src/storage/commit/commit-page.js';
import { createDatabaseClock } from '../../../src/storage/connection/database-clock.js';
import { tablesOf } from '../../../src/storage/tables/schema.js';
import { batchOf } from '../../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../../src/sync/ports/index.js';
import { entryJson, pageJson } from '../../support/entries.js';
import { checkedPage } from '../../support/pages.js';
import { claimNothing } from '../../support/store.js';

/*
 * The commit of a page of the feed as PostgreSQL receives it, to be read from top to bottom. In the source, the texts of the entries and
 * of the rules for several sources of a run are apart, because the commits of passes and of loaded results have them too.
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
const lease = { feed: 'default', holder: 'host/1/a', epoch: 1, filtersBefore: null };
const { entries, quarantine } = checkedPage(pageJson([entryJson(), 'null']));
const batch = batchOf(entries);
const page: PageCommit = { batch, quarantine, lease, from: 'a', to: 'b', freshness: claimNothing() };

test('sends the statement of feed-page.sql', async () => {
  await createCommits({ db, tables }, settings).commitPage(page);
  expect(statements).toHaveLength(1);
  await expect(`-- A page of the feed.\n${statements[0]?.trim()}\n`).toMatchFileSnapshot('statements/feed-page.sql');
});
