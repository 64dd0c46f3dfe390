import { describe, expect, it } from 'vitest';
import { ids, setUp } from './client.js';

describe('single run (interface 4.3)', () => {
  it('has the fields of the feed entry, the full data and the raw OCR result when the entry is truncated', async () => {
    const { page, get } = await setUp({ history: 20, switches: { truncatedShare: 1 } });
    for (const entry of (await page('limit=5')).items) {
      const { status, json } = await get(`/scans/${entry.scanId}`);
      expect(status).toBe(200);
      const { data, rawOcrResult, ...rest } = json;
      const { data: _, resultTruncated, ...same } = entry;
      expect(resultTruncated).toBe(true);
      expect(rest).toEqual({ ...same, resultTruncated: false });
      expect(data).toMatchObject({ positionen: expect.any(Array) });
      expect(rawOcrResult).toMatchObject({ pages: expect.any(Array) });
    }
  });

  it('has the data of the entry when the entry is not truncated', async () => {
    const { page, get } = await setUp({ history: 5 });
    for (const entry of (await page('markdown=yes')).items) {
      const { json } = await get(`/scans/${entry.scanId}?markdown=true`);
      expect([json.data, json.markdown]).toEqual([entry.data, entry.markdown]);
    }
  });

  it('omits every optional field except the result when runFields is required', async () => {
    const { emulator, page, get } = await setUp({ history: 3, switches: { runFields: 'required' } });
    const [failed] = emulator.appendRuns([{ status: 'failed' }]);
    const required = ['documentType', 'environment', 'fileName', 'revision', 'scanId', 'status'];
    const fieldsOf = async (path: string) => Object.keys((await get(path)).json).sort();
    for (const id of ids((await page()).items)) {
      expect(await fieldsOf(`/scans/${id}`)).toEqual([...required, 'data', 'rawOcrResult'].sort());
      expect(await fieldsOf(`/scans/${id}?markdown=true`)).toContain('markdown');
    }
    expect(await fieldsOf(`/scans/${failed?.scanId}`)).toEqual([...required, 'rawOcrResult'].sort());
  });

  it('keeps the flag of the entry in its full answer when runFlag is kept', async () => {
    const { emulator, page, get } = await setUp({ history: 3, switches: { truncatedShare: 1, runFlag: 'kept' } });
    const whole = emulator.appendRun({ truncated: false });
    for (const id of ids((await page()).items)) {
      const { json } = await get(`/scans/${id}?markdown=true`);
      expect(json).toMatchObject({ resultTruncated: id !== whole.scanId, data: expect.any(Object) });
      expect(json.markdown).toMatch(/^# /);
    }
  });

  it('has partnerTestMode like its feed entry when testModeField leaves it out', async () => {
    const { emulator, page, get } = await setUp({ history: 0 });
    for (const partnerTestMode of [true, false]) {
      emulator.appendRun({ partnerTestMode });
      emulator.correct(emulator.appendRun({ partnerTestMode }).scanId);
    }
    const sent = async (testModeField: 'always' | 'when-true' | 'first-revision') => {
      emulator.set({ testModeField });
      const { items } = await page();
      for (const item of items) {
        expect((await get(`/scans/${item.scanId}`)).json.partnerTestMode).toBe(item.partnerTestMode);
      }
      return items.map(({ revision, partnerTestMode }) => `${revision} ${partnerTestMode ?? '-'}`).sort();
    };
    expect(await sent('always')).toEqual(['1 false', '1 true', '2 false', '2 true']);
    expect(await sent('when-true')).toEqual(['1 -', '1 true', '2 -', '2 true']);
    expect(await sent('first-revision')).toEqual(['1 false', '1 true', '2 -', '2 -']);
  });

  it('includes markdown only when it is requested', async () => {
    const { page, get } = await setUp({ history: 1 });
    const [id] = ids((await page()).items);
    expect((await get(`/scans/${id}`)).json).not.toHaveProperty('markdown');
    expect((await get(`/scans/${id}?markdown=true`)).json.markdown).toMatch(/^# /);
  });

  it('shows a generated run as processing, and answers 404 before it was submitted', async () => {
    const options = { switches: { newRunsPerSecond: 0.01, processingMs: 10_000 } };
    const ahead = await setUp(options);
    ahead.advance(1000_000);
    const [entry] = (await ahead.page()).items;
    const { get, advance } = await setUp(options);
    const submitted = new Date(String(entry?.submittedAt)).getTime();
    const delivered = new Date(String(entry?.deliveredAt)).getTime();
    const start = Date.UTC(2026, 9, 1, 12);
    advance(submitted - start - 1);
    expect((await get(`/scans/${entry?.scanId}`)).status).toBe(404);
    advance(1);
    expect((await get(`/scans/${entry?.scanId}`)).json).toMatchObject({ status: 'processing' });
    advance(delivered - submitted);
    expect((await get(`/scans/${entry?.scanId}`)).json).toMatchObject({ status: 'completed', data: entry?.data });
  });

  it.each(['unbekannt', '00000000-0000-4000-8000-000000000000', '%F0%9F%98%80', 'x'.repeat(300), 'x'.repeat(15_000)])(
    'answers 404 in German when the id is unknown: %.40s',
    async (id) => {
      const { get } = await setUp({ history: 10 });
      const { status, json } = await get(`/scans/${id}`);
      expect(status).toBe(404);
      expect(json.error).toMatch(/nicht gefunden/);
    },
  );

  it('answers 404 when the run belongs to another organization', async () => {
    const apiKeys = [
      { key: 'one', organization: 'a' },
      { key: 'two', organization: 'b' },
    ];
    const { page, get } = await setUp({ history: 10, apiKeys });
    const [id] = ids((await page()).items);
    expect((await get(`/scans/${id}`)).status).toBe(200);
    expect((await get(`/scans/${id}`, { authorization: 'Bearer two' })).status).toBe(404);
  });

  it('returns scripted answers byte for byte in order, then the run', async () => {
    const { page, get, emulator } = await setUp({ history: 1 });
    const [id] = ids((await page()).items) as [string];
    const body = `{"scanId":"${id}","data":{"n":12345678901234567890,"m":1.10,"s":"\\ud800"}}`;
    emulator.answerRun(id, { body, times: 2 });
    emulator.answerRun(id, { status: 404, body: '{"error":"Weg."}', times: 1 });
    expect([(await get(`/scans/${id}`)).text, (await get(`/scans/${id}`)).text]).toEqual([body, body]);
    expect((await get(`/scans/${id}`)).status).toBe(404);
    expect((await get(`/scans/${id}`)).json.scanId).toBe(id);
  });
});
