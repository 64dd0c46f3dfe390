import { sql } from 'kysely';
import { beforeEach, describe, expect, it } from 'vitest';
import { notifyChanges } from '../../../src/storage/reporting/notify-changes.js';
import { entryJson, type Fields } from '../../support/entries.js';
import { untilWaiting } from '../../support/lock-waits.js';
import { useChangeListener } from '../../support/notifications.js';
import { useDatabase } from '../../support/postgres/index.js';
import { withConnection } from '../../support/postgres/maintenance.js';
import { emptyReports } from '../../support/reports.js';
import { MIGRATED, openTestDatabase, type TestFeed, tables, useServerOfItsOwn, useStore } from '../../support/store.js';

const given = useDatabase(MIGRATED);
const setup = useStore(given);
const listener = useChangeListener(given);
let feed: TestFeed;

beforeEach(async () => {
  await emptyReports(setup);
  feed = await setup.takeFeed();
});

let last: string | null;
/** Runs `work`, which sends none, and returns the notifications of the leader after it. */
async function heard(work: () => Promise<unknown>): Promise<string[]> {
  last = await notifyChanges(setup.connection, null);
  await listener.sent();
  await work();
  expect(await listener.sent()).toEqual([]);
  last = await notifyChanges(setup.connection, last);
  return listener.sent();
}

const entry = (scanId: string, over: Fields = {}) => entryJson({ scanId, ...over });
const AGO = { deliveredAt: '2020-01-01T00:00:00Z', completedAt: '2020-01-01T00:00:00Z' };

describe('a listener to scanfeed_changes', () => {
  it('hears one empty notification when a commit changes several runs', async () => {
    const page = [entry('a'), entry('b'), entry('c', { revision: 2, status: 'odd' })];
    expect(await heard(() => feed.commit(page))).toEqual(['']);
    const corrections = ['a', 'b'].map((scanId) => entry(scanId, { revision: 2 }));
    expect(await heard(() => feed.commit([...corrections, entry('c')]))).toEqual(['']);
  });

  it('hears one notification when a later revision enters or leaves quarantine', async () => {
    await feed.commit([entry('a'), entry('b')]);
    const unusable = ['a', 'b'].map((scanId) => entry(scanId, { revision: 2, status: 'odd' }));
    expect(await heard(() => feed.commit(unusable))).toEqual(['']);
    const { quarantine } = setup.operatorStore;
    const open = await quarantine.openIds('default');
    expect(await heard(() => quarantine.discard('default', open))).toEqual(['']);
  });

  it('hears one notification when runs are erased or expire', async () => {
    await feed.commit([entry('a'), entry('b'), entry('c', AGO), entry('d', AGO)]);
    const { erase, purgeRuns } = setup.operatorStore.deletedRuns;
    expect(await heard(() => erase(['a', 'b']))).toEqual(['']);
    expect(await heard(() => purgeRuns(365, 100))).toEqual(['']);
    expect(await heard(() => purgeRuns(365, 100))).toEqual([]);
  });

  it('hears nothing when a page changes no run', async () => {
    await feed.commit([entry('a', { revision: 2 }), entry('b', { revision: 2, status: 'odd' })]);
    const same = [entry('a', { revision: 2 }), entry('b', { revision: 2, status: 'odd' })];
    expect(await heard(() => feed.commit(same))).toEqual([]);
    expect(await heard(() => feed.commit([entry('a')]))).toEqual([]);
    expect(await heard(() => feed.commit([]))).toEqual([]);
    expect(await heard(() => feed.commit([entry('c')], { from: 'elsewhere' }))).toEqual([]);
  });

  it('hears of a commit that was under way when the leader looked', async () => {
    await feed.commit([entry('a')]);
    const other = openTestDatabase(given.url);
    let committing: Promise<unknown> = Promise.resolve();
    last = await notifyChanges(setup.connection, null);
    await listener.sent();
    await other.sql.transaction().execute(async (writer) => {
      await sql`SELECT FROM ${tables.runs} FOR UPDATE`.execute(writer);
      committing = feed.commit([entry('a', { revision: 2 })]);
      await untilWaiting(other.sql, 1);
      last = await notifyChanges(setup.connection, last);
      expect(await listener.sent()).toEqual([]);
    });
    await committing;
    last = await notifyChanges(setup.connection, last);
    expect(await listener.sent()).toEqual(['']);
    await other.close();
  });
});

describe('a server whose queue of notifications is full', () => {
  const server = useServerOfItsOwn({ max_notify_queue_pages: '64' });
  const fullSetup = useStore(server);

  it('stores runs when a session listens without reading', async () => {
    await withConnection(server.url, async (listening) => {
      await listening.query('LISTEN other');
      await listening.query('BEGIN');
      await withConnection(server.url, async (sending) => {
        // Of different content, since PostgreSQL sends equal ones once.
        const fill = sending.query(
          `SELECT pg_notify('other', repeat('a', 7900) || n) FROM generate_series(1, 100) AS n`,
        );
        await expect(fill).rejects.toMatchObject({ code: '54000' });
      });
      expect(await (await fullSetup.takeFeed()).counts([entry('a')])).toMatchObject({ stored: ['a'] });
      expect(await notifyChanges(fullSetup.connection, null)).toBe('1');
    });
  });
});
