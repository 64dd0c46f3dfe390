import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { readMigrations, requireSchema } from '../../src/storage/migrate.js';
import { batchOf, draftPage, withoutMarkdown, withPending } from '../../src/sync/page-draft.js';
import type { PageCommit } from '../../src/sync/ports.js';
import { entryJson, type Fields, pageJson, raw } from '../support/entries.js';
import { rawPage } from '../support/pages.js';
import { runRow, tables, useStore } from '../support/store.js';

const bench = useStore();
let scans = 0;
/** A scan id of its own for each test. */
const newScan = () => `scan-${++scans}`;

const feedRow = async () => (await bench.rows(sql<{ cursor: string | null }>`SELECT * FROM ${tables.feeds}`))[0];
const systemColumns = (scanId: string) =>
  bench.rows(sql`SELECT xmin::text, xmax::text, ctid::text FROM ${tables.runs} WHERE scan_id = ${scanId}`);

/** A truncated entry that commits without its result. */
function pendingBatch(over: Record<string, unknown>): Pick<PageCommit, 'batch'> {
  const draft = draftPage(rawPage(pageJson([entryJson({ data: undefined, resultTruncated: true, ...over })])));
  const entries = draft.entries.map((entry) => withPending(entry, 'not_loaded'));
  return { batch: batchOf(entries, draft) };
}

/** Results of the single-run endpoint, asked for with markdown, that have none; after entries that came in full. */
function bareBatch(bare: readonly Fields[], before: readonly Fields[] = []): Pick<PageCommit, 'batch'> {
  const draft = draftPage(rawPage(pageJson([...before, ...bare].map(entryJson))));
  const entries = draft.entries.map((entry, index) => (index < before.length ? entry : withoutMarkdown(entry)));
  return { batch: batchOf(entries, draft) };
}

/** The batch of several pages. */
function together(...pages: readonly (readonly Fields[])[]): Pick<PageCommit, 'batch'> {
  const drafts = pages.map((entries) => draftPage(rawPage(pageJson(entries.map(entryJson)))));
  return {
    batch: {
      pages: drafts.flatMap((draft) => draft.pages),
      entries: drafts.flatMap((draft) => draft.entries.map(({ accepted }) => accepted)),
    },
  };
}

describe('page and cursor', () => {
  it('are stored together', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const outcome = await feed.commit([entryJson({ scanId })], { to: 'here' });
    expect(outcome).toMatchObject({ kind: 'committed', counts: { inserted: 1, stored: [scanId] } });
    expect(await feedRow()).toMatchObject({ cursor: 'here' });
  });

  it('are both void when the stored cursor is another one', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const before = await feedRow();
    expect(await feed.commit([entryJson({ scanId }), 'null'], { from: 'elsewhere' })).toEqual({ kind: 'fenced' });
    expect(await bench.rows(runRow(scanId))).toEqual([]);
    expect(await feedRow()).toEqual(before);
  });

  it('are both void when the feed has changed hands', async () => {
    const feed = await bench.takeFeed();
    await bench.takeFeed();
    const scanId = newScan();
    expect(await feed.commit([entryJson({ scanId }), 'null'])).toEqual({ kind: 'fenced' });
    expect(await bench.rows(runRow(scanId))).toEqual([]);
    expect(await bench.rows(sql`SELECT FROM ${tables.quarantine}`)).toEqual([]);
  });

  it('wait for the commit of another writer, and see what it did', async () => {
    const feed = await bench.takeFeed();
    const [one, two] = await Promise.all([
      feed.commit([entryJson({ scanId: newScan() })], { to: 'one' }),
      feed.commit([entryJson({ scanId: newScan() })], { to: 'two' }),
    ]);
    expect([one.kind, two.kind].sort()).toEqual(['committed', 'fenced']);
  });
});

describe('pages that are committed together', () => {
  it('keep what was found out about each of their entries', async () => {
    const feed = await bench.takeFeed();
    const ids = Array.from({ length: 4 }, newScan);
    const fields = (n: number) => ({ scanId: ids[n], fileName: `${n}.pdf`, partnerTestMode: n === 3 ? 'ja' : false });
    const outcome = await feed.commit([], together([fields(0)], [fields(1), fields(2), fields(3)]));
    expect(outcome).toMatchObject({ counts: { inserted: 4 } });
    for (const [n, scanId] of ids.entries()) {
      const [row] = await bench.rows(runRow(scanId));
      expect(row).toMatchObject({ file_name: `${n}.pdf`, partner_test_mode: n === 3, repaired: n === 3 });
      expect(row?.extra).toEqual(n === 3 ? '{"partnerTestMode": "ja"}' : null);
    }
  });

  it('are judged as one: of a scan on both the highest revision is stored', async () => {
    const feed = await bench.takeFeed();
    const [twice, once] = [newScan(), newScan()];
    const newer = { scanId: twice, revision: 2, fileName: 'newer.pdf' };
    const older = { scanId: twice, revision: 1, fileName: 'older.pdf' };
    const outcome = await feed.commit([], together([newer, { scanId: once }], [older, newer]));
    expect(outcome).toMatchObject({ counts: { inserted: 2, stale: 1, unchanged: 1 } });
    expect(await bench.rows(runRow(twice))).toMatchObject([{ revision: 2, file_name: 'newer.pdf' }]);
  });
});

describe('values', () => {
  it('keep every digit and are found where the interface says', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, data: { lang: raw('12345678901234567890'), preis: raw('1.10'), fein: raw('0.1000e2') } }),
    ]);
    const [row] = await bench.rows(runRow(scanId));
    expect(row?.data).toBe('{"fein": 10.00, "lang": 12345678901234567890, "preis": 1.10}');
    expect(row).toMatchObject({
      revision: 1,
      status: 'completed',
      environment: 'prod',
      document_type_slug: 'rechnung',
      document_type_name: 'Rechnung',
      file_name: 'rechnung-1.pdf',
      partner_name: 'Muster GmbH',
      partner_test_mode: false,
      ocr_confidence: 0.97,
      submitted_at: new Date('2026-01-02T08:00:00.000Z'),
      completed_at: new Date('2026-01-02T08:00:30.000Z'),
      delivered_at: new Date('2026-01-02T08:00:31.000Z'),
      result_state: 'complete',
      extra: null,
      repaired: false,
      feed: 'default',
    });
  });

  it('that the interface does not know are kept in extra, digit by digit', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, neu: raw('1.10'), tief: { a: [raw('12345678901234567890')] } })]);
    expect((await bench.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1.10, "tief": {"a": [12345678901234567890]}}');
  });

  it('of the document type that the interface does not know are kept in extra too', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, documentType: { slug: 'rechnung', name: null, version: raw('1.10') }, neu: 1 }),
    ]);
    expect((await bench.rows(runRow(scanId)))[0]?.extra).toBe('{"neu": 1, "documentType": {"version": 1.10}}');
  });

  it('that are no good for their column become null, and the original goes to extra', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([
      entryJson({ scanId, ocrConfidence: 'hoch', completedAt: 'gestern', partnerTestMode: 'ja', error: 7 }),
    ]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      ocr_confidence: null,
      completed_at: null,
      partner_test_mode: true,
      repaired: true,
      extra: '{"error": 7, "completedAt": "gestern", "ocrConfidence": "hoch", "partnerTestMode": "ja"}',
    });
  });

  it('a time without a zone is UTC, whatever the zone of the session', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, completedAt: '2026-06-01T12:00:00' })]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      completed_at: new Date('2026-06-01T12:00:00Z'),
      repaired: false,
      extra: null,
    });
  });

  it('missing and null optional fields become null', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const absent = {
      partnerName: null,
      partnerTestMode: undefined,
      ocrConfidence: null,
      data: null,
      deliveredAt: null,
    };
    await feed.commit([
      entryJson({ scanId, ...absent, documentType: { slug: null, name: null }, status: 'failed', error: 'Unlesbar' }),
    ]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      document_type_slug: null,
      partner_name: null,
      partner_test_mode: false,
      ocr_confidence: null,
      data: null,
      delivered_at: null,
      error: 'Unlesbar',
    });
  });

  it('text that PostgreSQL cannot hold is repaired, and the original is kept byte for byte', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const entry = entryJson({ scanId, partnerName: raw('"a\\u0000b\\ud800"') });
    await feed.commit([entryJson({ scanId: newScan() }), entry]);
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({ partner_name: 'a\ufffdb\ufffd', repaired: true });
    const [kept] = await bench.rows(
      sql<{
        state: string;
        payload: Buffer;
      }>`SELECT state, payload FROM ${tables.quarantine} WHERE scan_id = ${scanId}`,
    );
    expect(kept?.state).toBe('repaired');
    expect(kept?.payload.toString()).toBe(entry);
  });
});

describe('the highest revision wins', () => {
  it('within a page and across pages, whatever the order; what it replaces goes to the history', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const revision = (n: number) => entryJson({ scanId, revision: n, data: { stand: n } });
    expect(await feed.counts([revision(2), revision(3), revision(1)])).toMatchObject({ inserted: 1, stale: 2 });
    expect(await feed.counts([revision(5)])).toMatchObject({ updated: 1, inserted: 0, filled: 0 });
    expect(await feed.counts([revision(4)])).toMatchObject({ stale: 1, updated: 0 });
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({ revision: 5, data: '{"stand": 5}' });
    expect(await bench.rows(sql`SELECT revision, data FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([
      { revision: 3, data: { stand: 3 } },
    ]);
  });

  it('without history where the feed keeps none', async () => {
    const feed = await bench.takeFeed({ keepHistory: false });
    const scanId = newScan();
    await feed.commit([entryJson({ scanId })]);
    await feed.commit([entryJson({ scanId, revision: 2 })]);
    expect(await bench.rows(sql`SELECT FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([]);
  });

  it('and the database itself refuses to go back', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, revision: 2 })]);
    const goBack = sql`UPDATE ${tables.runs} SET revision = 1 WHERE scan_id = ${scanId}`;
    await expect(bench.rows(goBack)).rejects.toThrow('PostgreSQL refused');
  });
});

describe('the same revision again', () => {
  it('writes nothing, not even a row lock', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId })]);
    const before = await systemColumns(scanId);
    expect(await feed.counts([entryJson({ scanId }), entryJson({ scanId })])).toMatchObject({
      unchanged: 2,
      inserted: 0,
      updated: 0,
      filled: 0,
      stored: [],
    });
    expect(await systemColumns(scanId)).toEqual(before);
  });

  it('with other content keeps the first and counts a conflict', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, data: { a: 1 } })]);
    expect(await feed.counts([entryJson({ scanId, data: { a: 2 } })])).toMatchObject({ unchanged: 1, conflicts: 1 });
    expect((await bench.rows(runRow(scanId)))[0]?.data).toBe('{"a": 1}');
    const twice = newScan();
    expect(
      await feed.counts([entryJson({ scanId: twice, error: 'a' }), entryJson({ scanId: twice, error: 'b' })]),
    ).toMatchObject({ inserted: 1, unchanged: 1, conflicts: 1 });
  });

  it('of another status completes nothing: it is a conflict', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([], pendingBatch({ scanId }));
    expect((await bench.store.duePending('default', 100)).filter((run) => run.scanId === scanId)).toEqual([]);
    await bench.rows(sql`UPDATE ${tables.runs} SET next_try_at = now() WHERE scan_id = ${scanId}`);
    expect(await bench.store.duePending('default', 100)).toMatchObject([{ scanId, revision: 1, status: 'completed' }]);
    const before = await systemColumns(scanId);
    const failed = entryJson({ scanId, status: 'failed', data: null, failureReason: 'ocr_failed', markdown: '# x' });
    expect(await feed.counts([failed])).toMatchObject({ unchanged: 1, conflicts: 1, updated: 0, stored: [] });
    expect(await systemColumns(scanId)).toEqual(before);
  });

  it('only ever becomes more complete', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    await feed.commit([], pendingBatch({ scanId }));
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      result_state: 'pending',
      pending_reason: 'not_loaded',
      data: null,
    });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ updated: 1, conflicts: 0 });
    const filled = { updated: 1, filled: 1, stored: [] };
    expect(await feed.counts([entryJson({ scanId, markdown: '# Rechnung' })])).toMatchObject(filled);
    expect(await feed.counts([], pendingBatch({ scanId }))).toMatchObject({ unchanged: 1, conflicts: 0 });
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({
      result_state: 'complete',
      pending_reason: null,
      next_try_at: null,
      markdown: '# Rechnung',
    });
    expect(await bench.rows(sql`SELECT FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([]);
  });
});

describe('that a revision has no markdown', () => {
  const absent = async (scanId: string) =>
    (await bench.rows(sql<object>`SELECT markdown, markdown_absent FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0];
  const known = async (scanId: string) => (await bench.store.findStored([scanId]))[0]?.markdownKnown;

  it('is remembered with it, and known again without a write', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    expect(await feed.counts([], bareBatch([{ scanId }]))).toMatchObject({ inserted: 1 });
    expect(await known(scanId)).toBe(true);
    const before = await systemColumns(scanId);
    expect(await feed.counts([], bareBatch([{ scanId }]))).toMatchObject({ unchanged: 1, updated: 0, stored: [] });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await feed.counts([], pendingBatch({ scanId }))).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await systemColumns(scanId)).toEqual(before);
  });

  it('is noted on a row that is stored without it, or that waits for its result', async () => {
    const feed = await bench.takeFeed();
    const [stored, waiting] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: stored })]);
    await feed.commit([], pendingBatch({ scanId: waiting }));
    expect(await known(stored)).toBe(false);
    const both = bareBatch([{ scanId: stored }, { scanId: waiting }]);
    expect(await feed.counts([], both)).toMatchObject({ updated: 2, filled: 2, conflicts: 0 });
    expect([await known(stored), await known(waiting)]).toEqual([true, true]);
    expect((await bench.rows(runRow(waiting)))[0]).toMatchObject({ result_state: 'complete', markdown: null });
  });

  it('is no longer so once markdown comes, or a higher revision', async () => {
    const feed = await bench.takeFeed();
    const [filled, corrected] = [newScan(), newScan()];
    await feed.commit([], bareBatch([{ scanId: filled }, { scanId: corrected }]));
    const markdown = '# Rechnung';
    await feed.commit([entryJson({ scanId: filled, markdown }), entryJson({ scanId: corrected, revision: 2 })]);
    expect(await absent(filled)).toEqual({ markdown, markdown_absent: false });
    expect(await absent(corrected)).toEqual({ markdown: null, markdown_absent: false });
    // And what is stored is not taken away again.
    expect(await feed.counts([], bareBatch([{ scanId: filled }]))).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await absent(filled)).toEqual({ markdown, markdown_absent: false });
  });

  it('is not lost to the same revision in full on the same page', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    expect(await feed.counts([], bareBatch([{ scanId }], [{ scanId }]))).toMatchObject({ inserted: 1, unchanged: 1 });
    expect(await known(scanId)).toBe(true);
  });
});

describe('of equal revisions on one page', () => {
  it('the one with markdown is taken, a complete one before it', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const markdown = '# Rechnung';
    expect(await feed.counts([entryJson({ scanId }), entryJson({ scanId, markdown })])).toMatchObject({
      inserted: 1,
      unchanged: 1,
      conflicts: 0,
    });
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({ markdown });
  });

  it('the first keeps its status', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const failed = entryJson({ scanId, status: 'failed', data: null, failureReason: 'ocr_failed', markdown: '# x' });
    expect(await feed.counts([entryJson({ scanId }), failed])).toMatchObject({ inserted: 1, conflicts: 1 });
    expect((await bench.rows(runRow(scanId)))[0]).toMatchObject({ status: 'completed' });
  });
});

describe('quarantine', () => {
  const entriesOf = (scanId: string) =>
    bench.rows(
      sql<{ state: string; times_seen: number; payload: Buffer }>`
        SELECT * FROM ${tables.quarantine} WHERE scan_id = ${scanId} ORDER BY id`,
    );

  it('keeps the entry whole, once, however often it comes', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const bad = entryJson({ scanId, status: 'archived', data: { n: raw('1.10') } });
    expect(await feed.counts([bad, bad])).toMatchObject({ quarantined: 1 });
    expect(await feed.counts([bad])).toMatchObject({ quarantined: 1 });
    const [kept, ...others] = await entriesOf(scanId);
    expect(others).toEqual([]);
    expect(kept).toMatchObject({ state: 'open', times_seen: 2, reason: 'status', revision: 1 });
    expect(kept?.payload.toString()).toBe(bad);
  });

  it('counts what is open, not the originals of repaired entries', async () => {
    const feed = await bench.takeFeed();
    const repaired = entryJson({ scanId: newScan(), partnerName: raw('"a\\u0000"') });
    expect(await feed.counts([repaired])).toMatchObject({ inserted: 1, quarantined: 0 });
    expect(await feed.counts([repaired])).toMatchObject({ unchanged: 1, quarantined: 0 });
  });

  it('closes when the same or a newer revision is stored', async () => {
    const feed = await bench.takeFeed();
    const [same, newer, together] = [newScan(), newScan(), newScan()];
    const bad = (scanId: string) => entryJson({ scanId, status: 'archived' });
    await feed.commit([bad(same), bad(newer)]);
    await feed.commit([entryJson({ scanId: same }), entryJson({ scanId: newer, revision: 2 })]);
    await feed.commit([bad(together), entryJson({ scanId: together, revision: 2 })]);
    expect(await feed.counts([bad(newer)])).toMatchObject({ quarantined: 0 });
    expect((await entriesOf(same))[0]).toMatchObject({ state: 'replayed' });
    expect((await entriesOf(newer))[0]).toMatchObject({ state: 'discarded', times_seen: 2 });
    expect((await entriesOf(together))[0]).toMatchObject({ state: 'discarded' });
  });
});

describe('an entry that is repaired on a page where another copy of it is refused', () => {
  it('is filed as what is missing, until it is stored', async () => {
    const feed = await bench.takeFeed();
    const scanId = newScan();
    const entry = { scanId, revision: 1, detail: '', payload: Buffer.from('{}') };
    const open = { ...entry, reason: 'refused', state: 'open' } as const;
    const repaired = { ...entry, reason: 'text', state: 'repaired' } as const;
    const states = () => bench.rows(sql`SELECT state, reason FROM ${tables.quarantine} WHERE scan_id = ${scanId}`);
    await feed.commit([], { quarantine: [repaired, open] });
    expect(await states()).toEqual([{ state: 'open', reason: 'refused' }]);
    await feed.commit([entryJson({ scanId })], { quarantine: [repaired] });
    expect(await states()).toEqual([{ state: 'repaired', reason: 'text' }]);
  });
});

describe('numbers of changes', () => {
  it('rise in the order of commits, and not where nothing changed', async () => {
    const feed = await bench.takeFeed();
    const [first, second] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: first })]);
    await feed.commit([entryJson({ scanId: second })]);
    await feed.commit([entryJson({ scanId: first, revision: 2 }), entryJson({ scanId: second })]);
    const order = await bench.rows(
      sql`SELECT scan_id FROM ${tables.runs} WHERE scan_id IN (${first}, ${second}) ORDER BY change_seq`,
    );
    expect(order).toEqual([{ scan_id: second }, { scan_id: first }]);
  });
});

describe('the clock that orders changes', () => {
  it('cannot be emptied', async () => {
    for (const statement of [sql`DELETE FROM ${tables.changeClock}`, sql`TRUNCATE ${tables.changeClock}`]) {
      await expect(bench.rows(statement)).rejects.toMatchObject({ sqlstate: 'P0001' });
    }
    expect(await bench.rows(sql`SELECT FROM ${tables.changeClock}`)).toHaveLength(1);
  });

  it('is not missed in silence: the commit is held and the cursor stays', async () => {
    const feed = await bench.takeFeed();
    const [known, scanId] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: known })]);
    const before = await feedRow();
    const migrations = await readMigrations();
    await withoutClock(async () => {
      await expect(feed.commit([entryJson({ scanId })])).rejects.toMatchObject({ kind: 'schema', remedy: 'hold' });
      const later = bench.store.commitResults(feed.lease, pendingBatch({ scanId }).batch);
      await expect(later).rejects.toThrow('INSERT INTO change_clock');
      const schema = requireSchema(bench.database.sql, tables, migrations);
      await expect(schema).rejects.toMatchObject({ kind: 'schema', remedy: 'hold' });
      await expect(schema).rejects.toThrow('INSERT INTO "scanfeed".change_clock DEFAULT VALUES');
      expect(await feedRow()).toEqual(before);
      // What writes nothing needs no clock.
      expect(await feed.counts([entryJson({ scanId: known })])).toMatchObject({ unchanged: 1 });
    });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ inserted: 1 });
  });

  /** As it is after a restore gone wrong. */
  async function withoutClock(work: () => Promise<void>): Promise<void> {
    await bench.rows(sql`ALTER TABLE ${tables.changeClock} DISABLE TRIGGER keep_row`);
    await bench.rows(sql`DELETE FROM ${tables.changeClock}`);
    try {
      await work();
    } finally {
      await bench.rows(sql`INSERT INTO ${tables.changeClock} DEFAULT VALUES`);
      await bench.rows(sql`ALTER TABLE ${tables.changeClock} ENABLE TRIGGER keep_row`);
    }
  }
});
