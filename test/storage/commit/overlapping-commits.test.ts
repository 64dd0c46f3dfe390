import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { MAX_JOINED_PAGES } from '../../../src/sync/page/join-pages.js';
import { ModelService } from '../../simulation/model-service.js';
import { concurrently, entriesOf } from '../../support/concurrent-commits.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { followToTheEnd } from '../../support/follow-to-the-end.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useDatabase } from '../../support/postgres/index.js';
import { connectionOf, MIGRATED, tables, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);

type Page = Readonly<Record<string, Fields>>;

/** Commits two consecutive pages of a feed so that the second statement has begun before the first one has ended. */
async function overlapping(name: string, first: Page, second: Page) {
  const feed = await setup.takeFeed({ name });
  return concurrently(
    setup.database.sql,
    () => feed.counts(entriesOf(first), { from: null, to: 'one' }),
    () => feed.counts(entriesOf(second), { from: 'one', to: 'two' }),
  );
}

const runsOf = (feed: string) =>
  setup.rows(sql`SELECT scan_id, revision, markdown FROM ${tables.runs} WHERE feed = ${feed} ORDER BY change_seq`);
const cursorOf = async (feed: string) => (await setup.store.readPosition(feed)).cursor;

describe('the commit of a page that begins before the one of the page before has ended', () => {
  it('waits for it and continues from its cursor', async () => {
    const [one, two] = await overlapping('ordinary', { a: {}, b: {} }, { c: {} });
    expect([one, two]).toMatchObject([{ inserted: 2 }, { inserted: 1 }]);
    expect(await runsOf('ordinary')).toMatchObject([{ scan_id: 'a' }, { scan_id: 'b' }, { scan_id: 'c' }]);
    expect(await cursorOf('ordinary')).toBe('two');
  });

  it('raises the revision of a run that the page before stored, and keeps the earlier one in the history', async () => {
    const [, two] = await overlapping('raised', { corrected: {} }, { corrected: { revision: 2 } });
    expect(two).toMatchObject({ inserted: 0, updated: 1 });
    expect(await runsOf('raised')).toMatchObject([{ scan_id: 'corrected', revision: 2 }]);
    const history = sql`SELECT revision FROM ${tables.runHistory} WHERE scan_id = 'corrected'`;
    expect(await setup.rows(history)).toEqual([{ revision: 1 }]);
  });

  it('writes nothing for what the page before stored, and fills in what it lacks', async () => {
    const [, two] = await overlapping(
      'known',
      { same: {}, newer: { revision: 2 }, bare: {} },
      { same: {}, newer: {}, bare: { markdown: '# Rechnung' } },
    );
    expect(two).toMatchObject({ inserted: 0, updated: 1, unchanged: 1, stale: 1, conflicts: 0 });
    expect(await runsOf('known')).toMatchObject([{ revision: 1 }, { revision: 2 }, { markdown: '# Rechnung' }]);
    expect(await cursorOf('known')).toBe('two');
  });

  it('leaves a run as it is when the page before has filled in the same value', async () => {
    const bare = await setup.takeFeed({ name: 'bare' });
    await bare.commit(entriesOf({ filled: {} }));
    const filled = { filled: { markdown: '# Rechnung' } };
    const [one, two] = await overlapping('twice', filled, filled);
    expect([one, two]).toMatchObject([
      { updated: 1, filled: 1 },
      { updated: 0, filled: 0, unchanged: 1 },
    ]);
    expect(await cursorOf('twice')).toBe('two');
  });

  it('is fenced when the page before was not committed', async () => {
    const feed = await setup.takeFeed({ name: 'failed' });
    const failing = await setup.connection.db.startTransaction().execute();
    await sql`UPDATE ${tables.feeds} SET cursor = 'one' WHERE name = 'failed'`.execute(failing);
    const second = feed.commit(entriesOf({ never: {} }), { from: 'one', to: 'two' });
    await untilWaiting(setup.database.sql, 1);
    await failing.rollback().execute();
    expect(await second).toEqual({ kind: 'fenced' });
    expect(await cursorOf('failed')).toBeNull();
    expect(await runsOf('failed')).toEqual([]);
  });

  it('is repeated without a failed poll when the isolation level does not let it wait', async () => {
    const { sql: db } = setup.database;
    const service = new ModelService();
    for (let n = 0; n < 100; n += 1) service.feed.push(entryJson({ scanId: `strict-${n}` }));
    const strict = { ...connectionOf(given.url), options: '-c default_transaction_isolation=repeatable\\ read' };
    const database = { connection: strict, maxConnections: 3 };
    const { following } = await db.transaction().execute(async (tx) => {
      await sql`SELECT FROM ${tables.changeClock} FOR UPDATE`.execute(tx);
      // More pages than one commit joins: otherwise the first one might take them all, and none would be left for the second.
      const context = { maxHeldPages: MAX_JOINED_PAGES + 1 };
      const followed = followToTheEnd({ url: given.url, feed: 'strict', service, database, context });
      await untilWaiting(db, 1);
      await untilWaiting(db, 2, 2_000); // rarely, the second commit begins only once the first one has ended
      return { following: followed };
    });
    const { inserted, failures } = await following;
    expect(inserted).toBe(100);
    expect(failures).toEqual([]);
    expect(await cursorOf('strict')).toBe('100');
  });
});
