import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { requireSchema } from '../../../src/storage/schema/check-schema.js';
import { readMigrations } from '../../../src/storage/schema/read-migrations.js';
import { batchOf, checkEntries } from '../../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../../src/sync/ports/index.js';
import { entryJson, type Fields, pageJson } from '../../support/entries.js';
import { rawPage } from '../../support/pages.js';
import { pendingBatch } from '../../support/pending.js';
import { runRow, tables, useStore } from '../../support/store.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each test. */
const newScan = () => `scan-${++scans}`;

const feedRow = async () => (await setup.rows(sql<{ cursor: string | null }>`SELECT * FROM ${tables.feeds}`))[0];

/** The batch of several pages. */
function together(...pages: readonly (readonly Fields[])[]): Pick<PageCommit, 'batch'> {
  const checkedPages = pages.map((entries) => checkEntries(rawPage(pageJson(entries.map(entryJson)))));
  return {
    batch: checkedPages.flatMap((checked) => batchOf(checked.entries)),
  };
}

describe('page and cursor', () => {
  it('are stored together when a page is committed', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const outcome = await feed.commit([entryJson({ scanId })], { to: 'here' });
    expect(outcome).toMatchObject({ kind: 'committed', counts: { inserted: 1, stored: [scanId] } });
    expect(await feedRow()).toMatchObject({ cursor: 'here' });
  });

  it('are not stored when the stored cursor has changed', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const before = await feedRow();
    expect(await feed.commit([entryJson({ scanId }), 'null'], { from: 'elsewhere' })).toEqual({ kind: 'fenced' });
    expect(await setup.rows(runRow(scanId))).toEqual([]);
    expect(await feedRow()).toEqual(before);
  });

  it('are not stored when another process holds the lease', async () => {
    const feed = await setup.takeFeed();
    await setup.takeFeed();
    const scanId = newScan();
    expect(await feed.commit([entryJson({ scanId }), 'null'])).toEqual({ kind: 'fenced' });
    expect(await setup.rows(runRow(scanId))).toEqual([]);
    expect(await setup.rows(sql`SELECT FROM ${tables.quarantine}`)).toEqual([]);
  });

  it('wait for another writer when both commit at once, and see its result', async () => {
    const feed = await setup.takeFeed();
    const [one, two] = await Promise.all([
      feed.commit([entryJson({ scanId: newScan() })], { to: 'one' }),
      feed.commit([entryJson({ scanId: newScan() })], { to: 'two' }),
    ]);
    expect([one.kind, two.kind].sort()).toEqual(['committed', 'fenced']);
  });
});

describe('pages that are committed together', () => {
  it('keep the findings of their checks when they are joined', async () => {
    const feed = await setup.takeFeed();
    const ids = Array.from({ length: 4 }, newScan);
    const fields = (n: number) => ({ scanId: ids[n], fileName: `${n}.pdf`, partnerTestMode: n === 3 ? 'ja' : false });
    const outcome = await feed.commit([], together([fields(0)], [fields(1), fields(2), fields(3)]));
    expect(outcome).toMatchObject({ counts: { inserted: 4 } });
    for (const [n, scanId] of ids.entries()) {
      const [row] = await setup.rows(runRow(scanId));
      expect(row).toMatchObject({ file_name: `${n}.pdf`, partner_test_mode: n === 3, repaired: n === 3 });
      expect(row?.extra).toEqual(n === 3 ? '{"partnerTestMode": "ja"}' : null);
    }
  });

  it('store the highest revision when a scan is on two of them', async () => {
    const feed = await setup.takeFeed();
    const [twice, once] = [newScan(), newScan()];
    const newer = { scanId: twice, revision: 2, fileName: 'newer.pdf' };
    const older = { scanId: twice, revision: 1, fileName: 'older.pdf' };
    const outcome = await feed.commit([], together([newer, { scanId: once }], [older, newer]));
    expect(outcome).toMatchObject({ counts: { inserted: 2, stale: 1, unchanged: 1 } });
    expect(await setup.rows(runRow(twice))).toMatchObject([{ revision: 2, file_name: 'newer.pdf' }]);
  });
});

describe('numbers of changes', () => {
  it('increase in the order of commits when rows change', async () => {
    const feed = await setup.takeFeed();
    const [first, second] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: first })]);
    await feed.commit([entryJson({ scanId: second })]);
    await feed.commit([entryJson({ scanId: first, revision: 2 }), entryJson({ scanId: second })]);
    const order = await setup.rows(
      sql`SELECT scan_id FROM ${tables.runs} WHERE scan_id IN (${first}, ${second}) ORDER BY change_seq`,
    );
    expect(order).toEqual([{ scan_id: second }, { scan_id: first }]);
  });
});

describe('the row of change_clock', () => {
  it('cannot be deleted when someone tries', async () => {
    for (const statement of [sql`DELETE FROM ${tables.changeClock}`, sql`TRUNCATE ${tables.changeClock}`]) {
      await expect(setup.rows(statement)).rejects.toMatchObject({ sqlstate: 'P0001' });
    }
    expect(await setup.rows(sql`SELECT FROM ${tables.changeClock}`)).toHaveLength(1);
  });

  it('holds the commit and keeps the cursor when it is missing', async () => {
    const feed = await setup.takeFeed();
    const [known, scanId] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: known })]);
    const before = await feedRow();
    const migrations = await readMigrations();
    await withoutClock(async () => {
      await expect(feed.commit([entryJson({ scanId })])).rejects.toMatchObject({ kind: 'schema', action: 'hold' });
      const later = setup.store.commitResults(feed.lease, pendingBatch({ scanId }).batch);
      await expect(later).rejects.toThrow('INSERT INTO change_clock');
      const schema = requireSchema(setup.connection, migrations);
      await expect(schema).rejects.toMatchObject({ kind: 'schema', action: 'hold' });
      await expect(schema).rejects.toThrow('INSERT INTO "scanfeed".change_clock DEFAULT VALUES');
      expect(await feedRow()).toEqual(before);
      // A commit that writes nothing needs no clock.
      expect(await feed.counts([entryJson({ scanId: known })])).toMatchObject({ unchanged: 1 });
    });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ inserted: 1 });
  });

  /** The state after a failed restore. */
  async function withoutClock(work: () => Promise<void>): Promise<void> {
    await setup.rows(sql`ALTER TABLE ${tables.changeClock} DISABLE TRIGGER keep_row`);
    await setup.rows(sql`DELETE FROM ${tables.changeClock}`);
    try {
      await work();
    } finally {
      await setup.rows(sql`INSERT INTO ${tables.changeClock} DEFAULT VALUES`);
      await setup.rows(sql`ALTER TABLE ${tables.changeClock} ENABLE TRIGGER keep_row`);
    }
  }
});
