import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { expect, test } from 'vitest';
import { feedPage } from '../../../src/storage/commit/commit-page.js';
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

const compiler = new Kysely({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
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
  const { sql } = feedPage(tables, settings, [page], 0).compile(compiler);
  await expect(`-- A page of the feed.\n${sql.trim()}\n`).toMatchFileSnapshot('statements/feed-page.sql');
});
