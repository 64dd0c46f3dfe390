import { describe, expect, it } from 'vitest';
import { form, ids, revisions, setUp } from './client.js';

describe('states and transitions (interface 3)', () => {
  it('shows an accepted submission as processing, at revision 1, until it is finished', async () => {
    const { submit, get, advance } = await setUp({ switches: { processingMs: 5000 } });
    const { scanId } = (await submit(form())).json;
    expect((await get(`/scans/${scanId}`)).json).toMatchObject({ scanId, status: 'processing', revision: 1 });
    advance(4999);
    expect((await get(`/scans/${scanId}`)).json.status).toBe('processing');
    advance(1);
    expect((await get(`/scans/${scanId}`)).json).toMatchObject({ scanId, status: 'completed', revision: 1 });
  });

  it('lists a run in the feed only when it is finished', async () => {
    const { submit, page, advance } = await setUp({ switches: { processingMs: 5000 } });
    const { scanId } = (await submit(form())).json;
    const before = await page('status=completed,failed&environment=all');
    expect(before.items).toEqual([]);
    advance(5000);
    expect(ids((await page(`cursor=${before.nextCursor}`)).items)).toEqual([scanId]);
  });

  it('has failureReason and a German error instead of data when recognition fails', async () => {
    const { submit, page, advance } = await setUp({ switches: { failureShare: 1 } });
    await submit(form());
    advance(60_000);
    expect((await page()).items).toEqual([]);
    const [entry] = (await page('status=failed')).items;
    expect(entry).toMatchObject({ status: 'failed' });
    expect(entry?.failureReason).toMatch(/^[a-z_]+$/);
    expect(entry?.error).toMatch(/^[A-ZÄÖÜ].*\.$/);
    expect(entry).not.toHaveProperty('data');
  });

  it('uses only the slugs and names of its document types', async () => {
    const { page } = await setUp({ history: 300 });
    const types = new Set((await page('limit=200')).items.map((item) => JSON.stringify(item.documentType)));
    expect([...types].sort()).toEqual(
      [
        { slug: 'auftragsbestaetigung', name: 'Auftragsbestätigung' },
        { slug: 'gutschrift', name: 'Gutschrift' },
        { slug: 'lieferschein', name: 'Lieferschein' },
        { slug: 'rechnung', name: 'Rechnung' },
      ].map((type) => JSON.stringify(type)),
    );
  });

  describe.each(['ahead', 'behind'] as const)('a correction delivered %s', (redelivery) => {
    it('raises the revision and changes the content of a finished run', async () => {
      const { emulator, page, get } = await setUp({ history: 3, switches: { redelivery } });
      const [first] = (await page('limit=1')).items;
      const scanId = String(first?.scanId);
      emulator.correct(scanId);
      const { json } = await get(`/scans/${scanId}`);
      expect(json).toMatchObject({ scanId, revision: 2, status: 'completed', fileName: first?.fileName });
      expect(json.data).not.toEqual(first?.data);
    });

    it('is listed once, at the new revision, when the feed is read from the beginning', async () => {
      const { emulator, drain, advance } = await setUp({ history: 10, switches: { redelivery } });
      const before = ids((await drain()).items);
      advance(1000);
      for (const scanId of before.slice(2, 5)) emulator.correct(scanId);
      emulator.correct(before[3] as string);
      const after = revisions((await drain()).items);
      expect(after).toHaveLength(10);
      expect(after.filter((entry) => !entry.endsWith('@1')).sort()).toEqual(
        [`${before[2]}@2`, `${before[3]}@3`, `${before[4]}@2`].sort(),
      );
    });

    it('keeps the entry of the old revision when the switch superseded is kept', async () => {
      const { emulator, drain } = await setUp({ history: 3, switches: { redelivery, superseded: 'kept' } });
      const [scanId] = ids((await drain()).items);
      emulator.correct(scanId as string);
      const after = revisions((await drain()).items);
      expect(after).toHaveLength(4);
      expect(after).toContain(`${scanId}@1`);
      expect(after).toContain(`${scanId}@2`);
    });

    it('keeps the feed sorted by delivery time', async () => {
      const { emulator, drain, advance } = await setUp({ history: 30, switches: { redelivery } });
      const before = ids((await drain()).items);
      for (const scanId of before.slice(10, 20)) {
        advance(700);
        emulator.correct(scanId);
      }
      const times = (await drain()).items.map((item) => String(item.deliveredAt));
      expect(times).toEqual([...times].sort());
      expect(times).toHaveLength(30);
    });
  });

  it('lists a correction ahead of cursors when a client continues', async () => {
    const { emulator, drain, page } = await setUp({ history: 5 });
    const { items, cursor } = await drain();
    emulator.correct(String(items[0]?.scanId));
    expect(revisions((await page(`cursor=${cursor}`)).items)).toEqual([`${items[0]?.scanId}@2`]);
  });

  it('lists a correction behind cursors only when a client goes back', async () => {
    const { emulator, drain, page } = await setUp({ history: 5, switches: { redelivery: 'behind' } });
    const { items, cursor } = await drain();
    const last = items[4] as Record<string, unknown>;
    emulator.correct(String(last.scanId));
    expect((await page(`cursor=${cursor}`)).items).toEqual([]);
    const since = new Date(String(last.deliveredAt)).getTime() - 1000;
    expect(revisions((await page(`since=${since}`)).items)).toEqual([`${last.scanId}@2`]);
  });

  it('hides a correction behind cursors when a client has not reached the old position yet', async () => {
    const { emulator, page, drain } = await setUp({ history: 10, switches: { redelivery: 'behind' } });
    const all = ids((await drain()).items);
    const { nextCursor } = await page('limit=2');
    emulator.correct(all[8] as string);
    const rest: string[] = [];
    for (let cursor = nextCursor; ; ) {
      const next = await page(`cursor=${cursor}&limit=3`);
      if (next.items.length === 0) break;
      rest.push(...ids(next.items));
      cursor = next.nextCursor;
    }
    expect(rest).toEqual([...all.slice(2, 8), all[9]]);
    expect(ids((await page()).items)).toContain(all[8]);
  });

  it('lists a correction ahead of a cursor when both are of the same millisecond', async () => {
    const { emulator, drain, page } = await setUp({ history: 2 });
    const [run] = emulator.appendCount(1);
    const { cursor } = await drain();
    emulator.correct(run?.scanId ?? '');
    expect(revisions((await page(`cursor=${cursor}`)).items)).toEqual([`${run?.scanId}@2`]);
  });

  it('ignores a cursor when its client has moved on, or when it was unused for ten minutes', async () => {
    const { emulator, drain, page, advance } = await setUp({ history: 10, switches: { redelivery: 'behind' } });
    await page('limit=1');
    advance(10 * 60_000);
    const { items } = await drain('limit=1');
    const last = items[9] as Record<string, unknown>;
    const { deliveredAt } = emulator.correct(String(last.scanId));
    expect(deliveredAt).toBe(new Date(String(last.deliveredAt)).getTime() - 1);
  });

  it('shows a failed run as completed when it was corrected', async () => {
    const { emulator, get } = await setUp();
    const [failed] = emulator.appendRuns([{ status: 'failed' }]);
    emulator.correct(failed?.scanId ?? '', { status: 'completed' });
    const { json } = await get(`/scans/${failed?.scanId}`);
    expect(json).toMatchObject({ status: 'completed', revision: 2 });
    expect(json.data).toBeTypeOf('object');
  });

  it('refuses a correction when the run is processing or unknown', async () => {
    const { emulator, submit } = await setUp();
    const { scanId } = (await submit(form())).json;
    expect(() => emulator.correct(String(scanId))).toThrow(RangeError);
    expect(() => emulator.correct('unknown')).toThrow(RangeError);
  });
});
