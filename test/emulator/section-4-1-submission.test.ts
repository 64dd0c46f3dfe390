import { describe, expect, it } from 'vitest';
import { form, setUp } from './client.js';

const key = (value: string) => ({ 'idempotency-key': value });

describe('submission of a document (interface 4.1)', () => {
  it('is answered with 202, scanId, status processing and an absolute statusUrl that is also the Location', async () => {
    const { submit, emulator, get } = await setUp();
    const { status, json, headers } = await submit(form());
    expect(status).toBe(202);
    expect(Object.keys(json).sort()).toEqual(['scanId', 'status', 'statusUrl']);
    expect(json.status).toBe('processing');
    expect(json.statusUrl).toBe(`${emulator.url}/scans/${json.scanId}`);
    expect(headers.get('location')).toBe(json.statusUrl);
    expect((await get(`/scans/${json.scanId}`)).status).toBe(200);
  });

  it('is answered with status processing even when processing takes no time', async () => {
    const { submit, get } = await setUp({ switches: { processingMs: 0 } });
    const { status, json } = await submit(form());
    expect([status, json.status]).toEqual([202, 'processing']);
    expect((await get(`/scans/${json.scanId}`)).json.status).toBe('completed');
  });

  it('keeps file name, document type, environment and the submission time', async () => {
    const { submit, get, advance } = await setUp({ switches: { processingMs: 3000 } });
    const { scanId } = (
      await submit(form({ name: 'Größe & Maß.pdf', documentType: 'lieferschein' }), 'environment=test')
    ).json;
    advance(3000);
    expect((await get(`/scans/${scanId}`)).json).toMatchObject({
      fileName: 'Größe & Maß.pdf',
      environment: 'test',
      documentType: { slug: 'lieferschein', name: 'Lieferschein' },
      submittedAt: '2026-10-01T12:00:00.000Z',
      completedAt: '2026-10-01T12:00:03.000Z',
      deliveredAt: '2026-10-01T12:00:03.000Z',
    });
  });

  it('is processed but kept out of the default feed when its environment is test', async () => {
    const { submit, page, advance } = await setUp();
    const { scanId } = (await submit(form(), 'environment=test')).json;
    advance(60_000);
    expect((await page()).items).toEqual([]);
    expect((await page('environment=test')).items).toMatchObject([
      { scanId, status: 'completed', environment: 'test' },
    ]);
  });

  it('creates a new run when it has no Idempotency-Key', async () => {
    const { submit } = await setUp();
    const [a, b] = [await submit(form()), await submit(form())];
    expect([a.status, b.status]).toEqual([202, 202]);
    expect(a.json.scanId).not.toBe(b.json.scanId);
  });

  it('is answered with 200, the same run and its current status when it repeats an Idempotency-Key', async () => {
    const { submit, page, advance } = await setUp({ switches: { processingMs: 1000 } });
    const first = await submit(form(), 'environment=prod', key('k-1'));
    const repeat = await submit(form({ name: 'anderer Name.pdf' }), 'environment=prod', key('k-1'));
    expect([first.status, repeat.status]).toEqual([202, 200]);
    expect(repeat.json).toEqual(first.json);
    advance(1000);
    const later = await submit(form(), 'environment=prod', key('k-1'));
    expect(later.json).toEqual({ ...first.json, status: 'completed' });
    expect((await page()).items).toHaveLength(1);
  });

  it('is answered with status failed when it repeats the Idempotency-Key of a failed run', async () => {
    const { submit, advance } = await setUp({ switches: { failureShare: 1 } });
    await submit(form(), 'environment=prod', key('k'));
    advance(60_000);
    expect((await submit(form(), 'environment=prod', key('k'))).json.status).toBe('failed');
  });

  it.each([
    ['a different file', form({ file: '%PDF-1.7\nanders' }), 'environment=prod'],
    ['a different environment', form(), 'environment=test'],
    ['a different document type', form({ documentType: 'gutschrift' }), 'environment=prod'],
  ])('is answered with 409 when it repeats an Idempotency-Key with %s', async (_, second, query) => {
    const { submit } = await setUp();
    await submit(form(), 'environment=prod', key('k'));
    const { status, json } = await submit(second, query, key('k'));
    expect(status).toBe(409);
    expect(json.error).toMatch(/Idempotency-Key/);
    expect((await submit(form(), 'environment=prod', key('k'))).status).toBe(200);
  });

  it('creates a new run when another organization used its Idempotency-Key', async () => {
    const apiKeys = [
      { key: 'one', organization: 'a' },
      { key: 'two', organization: 'b' },
    ];
    const { submit } = await setUp({ apiKeys });
    const first = await submit(form(), 'environment=prod', key('k'));
    const other = await submit(form(), 'environment=prod', { ...key('k'), authorization: 'Bearer two' });
    expect(other.status).toBe(202);
    expect(other.json.scanId).not.toBe(first.json.scanId);
  });

  it('creates a new run when its Idempotency-Key was refused before', async () => {
    const { submit } = await setUp();
    expect((await submit(form({ documentType: 'unbekannt' }), 'environment=prod', key('k'))).status).toBe(404);
    expect((await submit(form(), 'environment=prod', key('k'))).status).toBe(202);
  });

  it('is rejected when its document type has no ready schema in the environment', async () => {
    const notReadySchemas = [{ documentType: 'rechnung', environment: 'test' as const }];
    const { submit, emulator } = await setUp({ switches: { notReadySchemas } });
    expect((await submit(form(), 'environment=test')).status).toBe(422);
    expect((await submit(form(), 'environment=prod')).status).toBe(202);
    emulator.set({ notReadyStatus: 400 });
    expect((await submit(form(), 'environment=test')).status).toBe(400);
  });

  it('is answered with the scan id alone when its fields are set so', async () => {
    const { submit } = await setUp({ switches: { submissionFields: 'scan-id' } });
    const { status, json } = await submit(form());
    expect([status, Object.keys(json)]).toEqual([202, ['scanId']]);
  });

  it('is accepted when its header is within the first 1,024 bytes, as PDF readers accept it', async () => {
    const { submit } = await setUp();
    expect((await submit(form({ file: `${' '.repeat(1019)}%PDF-1.7` }))).status).toBe(202);
    expect((await submit(form({ file: `${' '.repeat(1020)}%PDF-1.7` }))).status).toBe(400);
  });

  it('is answered with another statusUrl when its base is set', async () => {
    const { submit } = await setUp({ switches: { statusUrlBase: 'https://anderswo.example/v1' } });
    const { json, headers } = await submit(form());
    expect(json.statusUrl).toBe(`https://anderswo.example/v1/scans/${json.scanId}`);
    expect(headers.get('location')).toBe(json.statusUrl);
  });

  it('is accepted with a file of several MiB, and rejected when it exceeds the limit', async () => {
    const { submit, emulator } = await setUp();
    const file = new Uint8Array(3 * 1024 * 1024);
    file.set(Buffer.from('%PDF-1.7'));
    expect((await submit(form({ file }))).status).toBe(202);
    emulator.set({ maxFileBytes: file.length });
    expect((await submit(form({ file }))).status).toBe(202);
    emulator.set({ maxFileBytes: file.length - 1 });
    expect((await submit(form({ file }))).status).toBe(400);
  });

  it('is answered with the reason when a large file is rejected', async () => {
    const { submit } = await setUp();
    const file = new Uint8Array(4 * 1024 * 1024);
    expect((await submit(form({ file }), 'environment=prod', { authorization: 'Bearer falsch' })).status).toBe(401);
    expect((await submit(form({ file }), '')).status).toBe(400);
  });
});
