import { describe, expect, it } from 'vitest';
import { ids, setup } from './client.js';

describe('interface 4.3: single run', () => {
  it('has the shape of the feed entry, in full, and the raw OCR result', async () => {
    const { page, get } = await setup({ history: 20, switches: { truncatedShare: 1 } });
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

  it('gives the same data as an entry that was not truncated', async () => {
    const { page, get } = await setup({ history: 5 });
    for (const entry of (await page('markdown=yes')).items) {
      const { json } = await get(`/scans/${entry.scanId}?markdown=true`);
      expect([json.data, json.markdown]).toEqual([entry.data, entry.markdown]);
    }
  });

  it('leaves out every optional field but the result when only required fields are wanted', async () => {
    const { emulator, page, get } = await setup({ history: 3, switches: { runFields: 'required' } });
    const [failed] = emulator.appendRuns([{ status: 'failed' }]);
    const required = ['documentType', 'environment', 'fileName', 'revision', 'scanId', 'status'];
    const fieldsOf = async (path: string) => Object.keys((await get(path)).json).sort();
    for (const id of ids((await page()).items)) {
      expect(await fieldsOf(`/scans/${id}`)).toEqual([...required, 'data', 'rawOcrResult'].sort());
      expect(await fieldsOf(`/scans/${id}?markdown=true`)).toContain('markdown');
    }
    expect(await fieldsOf(`/scans/${failed?.scanId}`)).toEqual([...required, 'rawOcrResult'].sort());
  });

  it('attaches markdown only when asked', async () => {
    const { page, get } = await setup({ history: 1 });
    const [id] = ids((await page()).items);
    expect((await get(`/scans/${id}`)).json).not.toHaveProperty('markdown');
    expect((await get(`/scans/${id}?markdown=true`)).json.markdown).toMatch(/^# /);
  });

  it('shows failed runs with failureReason and error', async () => {
    const { emulator, get } = await setup();
    const [run] = emulator.appendRuns([{ status: 'failed', failureReason: 'timeout', error: 'Zeit überschritten.' }]);
    const { json } = await get(`/scans/${run?.scanId}`);
    expect(json).toMatchObject({ status: 'failed', failureReason: 'timeout', error: 'Zeit überschritten.' });
    expect(json).not.toHaveProperty('data');
  });

  it('knows a generated run while it is processing, and not before it was submitted', async () => {
    const options = { switches: { newRunsPerSecond: 0.01, processingMs: 10_000 } };
    const ahead = await setup(options);
    ahead.advance(1000_000);
    const [entry] = (await ahead.page()).items;
    const { get, advance } = await setup(options);
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

  it.each(['unbekannt', '00000000-0000-4000-8000-000000000000', '%F0%9F%98%80', 'x'.repeat(300)])(
    'answers 404 in German for the unknown id %s',
    async (id) => {
      const { get } = await setup({ history: 10 });
      const { status, json } = await get(`/scans/${id}`);
      expect(status).toBe(404);
      expect(json.error).toMatch(/nicht gefunden/);
    },
  );

  it('does not show runs of another organization', async () => {
    const apiKeys = [
      { key: 'one', organization: 'a' },
      { key: 'two', organization: 'b' },
    ];
    const { page, get } = await setup({ history: 10, apiKeys });
    const [id] = ids((await page()).items);
    expect((await get(`/scans/${id}`)).status).toBe(200);
    expect((await get(`/scans/${id}`, { authorization: 'Bearer two' })).status).toBe(404);
  });

  it('gives scripted answers byte for byte, in order, then the run itself', async () => {
    const { page, get, emulator } = await setup({ history: 1 });
    const [id] = ids((await page()).items) as [string];
    const body = `{"scanId":"${id}","data":{"n":12345678901234567890,"m":1.10,"s":"\\ud800"}}`;
    emulator.answerRun(id, { body, times: 2 });
    emulator.answerRun(id, { status: 404, body: '{"error":"Weg."}', times: 1 });
    expect([(await get(`/scans/${id}`)).text, (await get(`/scans/${id}`)).text]).toEqual([body, body]);
    expect((await get(`/scans/${id}`)).status).toBe(404);
    expect((await get(`/scans/${id}`)).json.scanId).toBe(id);
  });
});
