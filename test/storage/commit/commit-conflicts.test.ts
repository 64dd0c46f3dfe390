import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { createStore } from '../../../src/storage/store.js';
import { concurrently, entriesOf, pageOf } from '../../support/concurrent-commits.js';
import type { Fields } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { type CommitStatement, notingCommits } from '../../support/noted-commits.js';
import { TEST_SCHEMA, tables, takeFeed, testFeed, useStore } from '../../support/store.js';

const setup = useStore();
const HOUR = 3_600_000;
const AT_END = { end: 'yes' as const, polledAt: 0, completeUpTo: null, lastDeliveredAt: null };

const row = async (scanId: string) =>
  (await setup.rows(sql<Record<string, unknown>>`SELECT * FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0];

/** A store that records its commit statements before they are sent, at a monotonic time that the test sets. */
function notingStore({ time = { now: 0 }, note = (_sent: readonly CommitStatement[]) => {} } = {}) {
  const sent: CommitStatement[] = [];
  const database = notingCommits(setup.database, (statement) => {
    sent.push(statement);
    note(sent);
  });
  const settings = { schema: TEST_SCHEMA, pendingRetryMs: 30_000, keptDays: null };
  return { store: createStore(database, { ...settings, monotonic: () => time.now }), sent };
}

describe('two feeds that store the same scans at the same time', () => {
  it('complete the row when the second has more values', async () => {
    const bare = await setup.takeFeed({ name: 'bare' });
    const full = await setup.takeFeed({ name: 'full' });
    const [one, two] = await concurrently(
      setup.database.sql,
      () => bare.counts(entriesOf({ shared: {} })),
      () => full.counts(entriesOf({ shared: { markdown: '# Rechnung' }, alone: {} }), { to: 'on' }),
    );
    expect(one).toMatchObject({ inserted: 1 });
    expect(two).toMatchObject({ inserted: 1, updated: 1, unchanged: 0, stale: 0, conflicts: 0 });
    // The other one was stored by the first commit and only filled.
    expect(two).toMatchObject({ stored: ['alone'] });
    expect(await row('shared')).toMatchObject({ markdown: '# Rechnung', feed: 'full' });
    expect(await setup.store.readPosition('full')).toMatchObject({ cursor: 'on' });
  });

  it('count the entry of the second correctly when it is unchanged, in conflict, stale or newer', async () => {
    const a = await setup.takeFeed({ name: 'a' });
    const b = await setup.takeFeed({ name: 'b' });
    const [, two] = await concurrently(
      setup.database.sql,
      () => a.counts(entriesOf({ same: {}, other: { data: { a: 1 } }, old: { revision: 2 }, newer: {} })),
      () => b.counts(entriesOf({ same: {}, other: { data: { a: 2 } }, old: {}, newer: { revision: 2 } })),
    );
    expect(two).toMatchObject({ inserted: 0, updated: 1, unchanged: 2, conflicts: 1, stale: 1, stored: ['newer'] });
    expect(await row('other')).toMatchObject({ data: { a: 1 }, feed: 'a' });
  });

  it('judge a loaded result again when another commit has overtaken it', async () => {
    const a = await setup.takeFeed({ name: 'a' });
    const b = await setup.takeFeed({ name: 'b' });
    const result = (over: Fields) => pageOf(entriesOf({ loaded: over })).batch;
    const [, two] = await concurrently(
      setup.database.sql,
      () => setup.store.commitResults(a.lease, result({})),
      () => setup.store.commitResults(b.lease, result({ markdown: '# Rechnung' })),
    );
    expect(two).toMatchObject({ counts: { updated: 1, stale: 0 } });
    expect(await row('loaded')).toMatchObject({ markdown: '# Rechnung' });
  });

  it('quarantine nothing when the second finds its run stored', async () => {
    const a = await setup.takeFeed({ name: 'a' });
    const b = await setup.takeFeed({ name: 'b' });
    const [, tried] = await concurrently(
      setup.database.sql,
      () => a.counts(entriesOf({ tried: {} })),
      () => setup.store.tryEntries(b.lease, pageOf(entriesOf({ tried: {}, untouched: {} })).batch),
    );
    expect(tried).toBeUndefined();
    expect(await row('untouched')).toBeUndefined();
  });

  it('retry the whole statement with current ages when it was overtaken', async () => {
    const time = { now: 0 };
    const { store, sent } = notingStore({ time });
    const one = await setup.takeFeed({ name: 'early' });
    const two = await takeFeed(store, testFeed({ name: 'late' }));
    for (const until of [HOUR, 2 * HOUR]) {
      sent.splice(0);
      const entries = entriesOf({ [`met at ${until}`]: {} });
      const [, outcome] = await concurrently(
        setup.database.sql,
        () => one.commit(entries),
        () => two.commit(entries, { freshness: AT_END }),
        () => {
          time.now = until;
        },
      );
      expect(outcome).toMatchObject({ asOf: { readAt: until } });
      expect(sent).toEqual(['page', 'page']);
      const [late] = await setup.rows(
        sql<{ age: string }>`SELECT extract(epoch FROM clock_timestamp() - data_complete_as_of) * 1000 AS age
          FROM ${tables.feeds} WHERE name = 'late'`,
      );
      expect(Number(late?.age)).toBeGreaterThanOrEqual(HOUR);
    }
  });

  it('raise the revision in the first try when the stored one is lower', async () => {
    const { store, sent } = notingStore();
    const a = await setup.takeFeed({ name: 'a' });
    const b = await takeFeed(store, testFeed({ name: 'b' }));
    const [one, two] = await concurrently(
      setup.database.sql,
      () => a.counts(entriesOf({ overtakes: {} })),
      () => b.counts(entriesOf({ overtakes: { revision: 2 } })),
    );
    expect(sent).toEqual(['page']);
    expect([one, two]).toMatchObject([
      { inserted: 1, updated: 0 },
      { inserted: 0, updated: 1 },
    ]);
    expect(await row('overtakes')).toMatchObject({ revision: 2, feed: 'b' });
  });

  it('judge an entry again before the position moves when its row was raised', async () => {
    const { store, sent } = notingStore();
    const a = await setup.takeFeed({ name: 'a' });
    const b = await takeFeed(store, testFeed({ name: 'b' }));
    await a.counts(entriesOf({ raised: {} }));
    const [one, two] = await concurrently(
      setup.database.sql,
      () => a.counts(entriesOf({ raised: { revision: 2 } })),
      () => b.counts(entriesOf({ raised: { revision: 2, markdown: '# Rechnung' } }), { to: 'on' }),
    );
    expect(sent).toEqual(['page', 'page']);
    expect([one, two]).toMatchObject([{ updated: 1 }, { updated: 1, stale: 0 }]);
    expect(await row('raised')).toMatchObject({ revision: 2, markdown: '# Rechnung', feed: 'b' });
    expect(await setup.store.readPosition('b')).toMatchObject({ cursor: 'on' });
  });

  it('judge an entry again when a writer outside scanfeed has raised its row', async () => {
    const { store, sent } = notingStore();
    const feed = await takeFeed(store, testFeed({ name: 'waiting' }));
    await feed.commit(entriesOf({ held: {} }));
    sent.splice(0);
    const { counts } = await setup.database.sql.transaction().execute(async (tx) => {
      await sql`UPDATE ${tables.runs} SET revision = 3, test_mode_revision = 3 WHERE scan_id = 'held'`.execute(tx);
      const begun = feed.counts(entriesOf({ held: { revision: 2 }, 'not held': {} }));
      await untilWaiting(setup.database.sql, 1);
      return { counts: begun };
    });
    expect(await counts).toMatchObject({ inserted: 1, stale: 1, updated: 0 });
    expect(sent).toEqual(['page', 'page']);
  });

  it('write nothing when the second statement cannot be retried', async () => {
    const cut = new Error('cut');
    const { store } = notingStore({
      note: ({ length }) => {
        if (length === 2) throw cut;
      },
    });
    const a = await setup.takeFeed({ name: 'a' });
    const b = await takeFeed(store, testFeed({ name: 'b' }));
    const before = await setup.store.readPosition('b');
    const page = entriesOf({ cut: { markdown: '# Rechnung' }, 'cut off': {} });
    const [, refused] = await concurrently(
      setup.database.sql,
      () => a.counts(entriesOf({ cut: {} })),
      () => b.counts(page).catch((error: unknown) => error),
    );
    expect(refused).toBe(cut);
    expect(await row('cut off')).toBeUndefined();
    expect(await setup.store.readPosition('b')).toEqual(before);
    expect(await b.counts(page)).toMatchObject({ inserted: 1, updated: 1 });
  });
});

describe('a commit to a table that others have changed', () => {
  it('fails after five tries and keeps the position when a trigger skips the row', async () => {
    const { sql: db } = setup.database;
    await sql`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`.execute(db);
    await sql`CREATE TRIGGER swallow BEFORE INSERT ON ${tables.runs} FOR EACH ROW WHEN (NEW.scan_id = 'swallowed')
      EXECUTE FUNCTION swallow()`.execute(db);
    const { store, sent } = notingStore();
    const feed = await takeFeed(store, testFeed({ name: 'swallowing' }));
    const page = entriesOf({ swallowed: {}, neighbour: {} });
    await expect(feed.commit(page)).rejects.toMatchObject({
      kind: 'serialization',
      action: 'retry',
      sqlstate: 'SF002',
      message: expect.stringContaining('a trigger or row security policy on'),
    });
    expect(sent).toEqual(Array(5).fill('page'));
    expect(await setup.store.readPosition('swallowing')).toMatchObject({ cursor: null });
    expect(await row('neighbour')).toBeUndefined();
    await sql`DROP FUNCTION swallow CASCADE`.execute(db);
    expect(await feed.counts(page)).toMatchObject({ inserted: 2 });
  });

  it('fails with a data error when a unique index refuses a value', async () => {
    const { sql: db } = setup.database;
    await sql`CREATE UNIQUE INDEX theirs ON ${tables.runs} (file_name) WHERE file_name = 'unique.pdf'`.execute(db);
    const { store, sent } = notingStore();
    const feed = await takeFeed(store, testFeed({ name: 'indexed' }));
    await feed.counts(entriesOf({ unique: { fileName: 'unique.pdf' } }));
    sent.splice(0);
    await expect(feed.commit(entriesOf({ again: { fileName: 'unique.pdf' } }))).rejects.toMatchObject({
      sqlstate: '23505',
      action: 'reject',
      message: expect.stringContaining('theirs'),
    });
    expect(sent).toEqual(['page']);
    await sql`DROP INDEX ${sql.id(TEST_SCHEMA, 'theirs')}`.execute(db);
  });
});
