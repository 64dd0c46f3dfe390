import { sql } from 'kysely';
import { describe, expect, it } from 'vitest';
import { batchOf, checkEntries, withoutMarkdown } from '../../../src/sync/page/check-entries.js';
import type { PageCommit } from '../../../src/sync/ports/index.js';
import { entryJson, type Fields, pageJson } from '../../support/entries.js';
import { rawPage } from '../../support/pages.js';
import { pendingBatch } from '../../support/pending.js';
import { runRow, tables, useStore } from '../../support/store.js';

const setup = useStore();
let scans = 0;
/** A separate scan id for each test. */
const newScan = () => `scan-${++scans}`;

const systemColumns = (scanId: string) =>
  setup.rows(sql`SELECT xmin::text, xmax::text, ctid::text FROM ${tables.runs} WHERE scan_id = ${scanId}`);

/** Results of the single-run endpoint without markdown, although it was requested, after complete entries. */
function bareBatch(bare: readonly Fields[], before: readonly Fields[] = []): Pick<PageCommit, 'batch'> {
  const checked = checkEntries(rawPage(pageJson([...before, ...bare].map(entryJson))));
  const entries = checked.entries.map((entry, index) => (index < before.length ? entry : withoutMarkdown(entry)));
  return { batch: batchOf(entries) };
}

describe('the highest revision', () => {
  it('wins when revisions arrive in any order, and the others go to the history', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const revision = (n: number) => entryJson({ scanId, revision: n, data: { stand: n } });
    expect(await feed.counts([revision(2), revision(3), revision(1)])).toMatchObject({ inserted: 1, stale: 2 });
    expect(await feed.counts([revision(5)])).toMatchObject({ updated: 1, inserted: 0, filled: 0 });
    expect(await feed.counts([revision(4)])).toMatchObject({ stale: 1, updated: 0 });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ revision: 5, data: '{"stand": 5}' });
    expect(await setup.rows(sql`SELECT revision, data FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([
      { revision: 3, data: { stand: 3 } },
    ]);
  });

  it('leaves no history when the feed keeps none', async () => {
    const feed = await setup.takeFeed({ keepHistory: false });
    const scanId = newScan();
    await feed.commit([entryJson({ scanId })]);
    await feed.commit([entryJson({ scanId, revision: 2 })]);
    expect(await setup.rows(sql`SELECT FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([]);
  });

  it('is kept by the database when a statement would lower it', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, revision: 2 })]);
    const goBack = sql`UPDATE ${tables.runs} SET revision = 1 WHERE scan_id = ${scanId}`;
    await expect(setup.rows(goBack)).rejects.toThrow('PostgreSQL refused');
  });
});

describe('the same revision delivered again', () => {
  it('writes no row and no lock when nothing has changed', async () => {
    const feed = await setup.takeFeed();
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

  it('keeps the first content and counts a conflict when the content differs', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([entryJson({ scanId, data: { a: 1 } })]);
    expect(await feed.counts([entryJson({ scanId, data: { a: 2 } })])).toMatchObject({ unchanged: 1, conflicts: 1 });
    expect((await setup.rows(runRow(scanId)))[0]?.data).toBe('{"a": 1}');
    const twice = newScan();
    const failed = (error: string) => entryJson({ scanId: twice, status: 'failed', data: null, error });
    expect(await feed.counts([failed('a'), failed('b')])).toMatchObject({ inserted: 1, unchanged: 1, conflicts: 1 });
  });

  it('adds nothing and counts a conflict when the status differs', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([], pendingBatch({ scanId }));
    expect((await setup.store.duePending('default', 100)).filter((run) => run.scanId === scanId)).toEqual([]);
    await setup.rows(sql`UPDATE ${tables.runs} SET next_try_at = now() WHERE scan_id = ${scanId}`);
    expect(await setup.store.duePending('default', 100)).toMatchObject([{ scanId, revision: 1, status: 'completed' }]);
    const before = await systemColumns(scanId);
    const failed = entryJson({ scanId, status: 'failed', data: null, failureReason: 'ocr_failed', markdown: '# x' });
    expect(await feed.counts([failed])).toMatchObject({ unchanged: 1, conflicts: 1, updated: 0, stored: [] });
    expect(await systemColumns(scanId)).toEqual(before);
  });

  it('adds missing values when the stored row is incomplete', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    await feed.commit([], pendingBatch({ scanId }));
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      result_state: 'pending',
      pending_reason: 'not_loaded',
      data: null,
    });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ updated: 1, conflicts: 0 });
    const filled = { updated: 1, filled: 1, stored: [] };
    expect(await feed.counts([entryJson({ scanId, markdown: '# Rechnung' })])).toMatchObject(filled);
    expect(await feed.counts([], pendingBatch({ scanId }))).toMatchObject({ unchanged: 1, conflicts: 0 });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({
      result_state: 'complete',
      pending_reason: null,
      next_try_at: null,
      markdown: '# Rechnung',
    });
    expect(await setup.rows(sql`SELECT FROM ${tables.runHistory} WHERE scan_id = ${scanId}`)).toEqual([]);
  });
});

describe('the absence of markdown', () => {
  const absent = async (scanId: string) =>
    (await setup.rows(sql<object>`SELECT markdown, markdown_absent FROM ${tables.runs} WHERE scan_id = ${scanId}`))[0];
  const known = async (scanId: string) => (await setup.store.findStored([scanId]))[0]?.markdownKnown;

  it('is stored, and needs no write when it is known', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    expect(await feed.counts([], bareBatch([{ scanId }]))).toMatchObject({ inserted: 1 });
    expect(await known(scanId)).toBe(true);
    const before = await systemColumns(scanId);
    expect(await feed.counts([], bareBatch([{ scanId }]))).toMatchObject({ unchanged: 1, updated: 0, stored: [] });
    expect(await feed.counts([entryJson({ scanId })])).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await feed.counts([], pendingBatch({ scanId }))).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await systemColumns(scanId)).toEqual(before);
  });

  it('is stored when the row exists without markdown or is pending', async () => {
    const feed = await setup.takeFeed();
    const [stored, waiting] = [newScan(), newScan()];
    await feed.commit([entryJson({ scanId: stored })]);
    await feed.commit([], pendingBatch({ scanId: waiting }));
    expect(await known(stored)).toBe(false);
    const both = bareBatch([{ scanId: stored }, { scanId: waiting }]);
    expect(await feed.counts([], both)).toMatchObject({ updated: 2, filled: 2, conflicts: 0 });
    expect([await known(stored), await known(waiting)]).toEqual([true, true]);
    expect((await setup.rows(runRow(waiting)))[0]).toMatchObject({ result_state: 'complete', markdown: null });
  });

  it('ends when markdown or a higher revision is stored', async () => {
    const feed = await setup.takeFeed();
    const [filled, corrected] = [newScan(), newScan()];
    await feed.commit([], bareBatch([{ scanId: filled }, { scanId: corrected }]));
    const markdown = '# Rechnung';
    await feed.commit([entryJson({ scanId: filled, markdown }), entryJson({ scanId: corrected, revision: 2 })]);
    expect(await absent(filled)).toEqual({ markdown, markdown_absent: false });
    expect(await absent(corrected)).toEqual({ markdown: null, markdown_absent: false });
    // Stored markdown is not removed again.
    expect(await feed.counts([], bareBatch([{ scanId: filled }]))).toMatchObject({ unchanged: 1, updated: 0 });
    expect(await absent(filled)).toEqual({ markdown, markdown_absent: false });
  });

  it('is kept when the full revision is on the same page', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    expect(await feed.counts([], bareBatch([{ scanId }], [{ scanId }]))).toMatchObject({ inserted: 1, unchanged: 1 });
    expect(await known(scanId)).toBe(true);
  });
});

describe('of equal revisions on one page', () => {
  it('markdown is kept when one entry has it, and a complete result when one is complete', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const markdown = '# Rechnung';
    expect(await feed.counts([entryJson({ scanId }), entryJson({ scanId, markdown })])).toMatchObject({
      inserted: 1,
      unchanged: 1,
      conflicts: 0,
    });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ markdown });
  });

  it('the first keeps its status when another one differs', async () => {
    const feed = await setup.takeFeed();
    const scanId = newScan();
    const failed = entryJson({ scanId, status: 'failed', data: null, failureReason: 'ocr_failed', markdown: '# x' });
    expect(await feed.counts([entryJson({ scanId }), failed])).toMatchObject({ inserted: 1, conflicts: 1 });
    expect((await setup.rows(runRow(scanId)))[0]).toMatchObject({ status: 'completed' });
  });
});
