import { describe, expect, it } from 'vitest';
import { form, noon, setup } from './client.js';

const german = /^[A-ZÄÖÜ„].*\.$/;

describe('interface 7: errors', () => {
  it.each([
    ['environment missing', form(), ''],
    ['environment empty', form(), 'environment='],
    ['environment invalid', form(), 'environment=all'],
    ['environment given twice', form(), 'environment=prod&environment=test'],
    ['no file', form({ file: null }), 'environment=prod'],
    ['a file in another field', form({ field: 'document' }), 'environment=prod'],
    ['a file that is not application/pdf', form({ type: 'image/png' }), 'environment=prod'],
    ['a file that only calls itself a PDF', form({ file: 'GIF89a' }), 'environment=prod'],
    ['an empty file', form({ file: '' }), 'environment=prod'],
    ['document type missing', form({ documentType: null }), 'environment=prod'],
    ['document type empty', form({ documentType: '' }), 'environment=prod'],
  ])('answers a submission with 400: %s', async (_, data, query) => {
    const { submit, emulator } = await setup();
    const { status, json } = await submit(data, query);
    expect(status).toBe(400);
    expect(Object.keys(json)).toEqual(['error']);
    expect(json.error).toMatch(german);
    expect([...emulator.entries()]).toEqual([]);
  });

  it('answers a submission with 400: several files', async () => {
    const { submit } = await setup();
    const data = form();
    data.append('file', new Blob(['%PDF-1.7 zwei'], { type: 'application/pdf' }), 'zwei.pdf');
    expect((await submit(data)).status).toBe(400);
  });

  it.each([
    ['JSON', '{"documentType":"rechnung"}', { 'content-type': 'application/json' }],
    ['broken JSON', '{', { 'content-type': 'application/json' }],
    ['a bare PDF', '%PDF-1.7', { 'content-type': 'application/pdf' }],
    ['a URL-encoded form', 'documentType=rechnung', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['multipart without a boundary', '--x', { 'content-type': 'multipart/form-data' }],
    [
      'multipart that breaks off',
      '--x\r\nContent-Disposition: form-data; name="file"',
      { 'content-type': 'multipart/form-data; boundary=x' },
    ],
    ['nothing', undefined, {}],
  ])('answers a submission with 400: the body is %s', async (_, body, headers: Record<string, string>) => {
    const { submit } = await setup();
    const { status, json } = await submit(body, 'environment=prod', headers);
    expect(status).toBe(400);
    expect(json.error).toMatch(german);
  });

  it('answers a submission with 400: file too large', async () => {
    const { submit } = await setup({ switches: { maxFileBytes: 10 } });
    expect((await submit(form())).json.error).toMatch(/zu groß/);
    expect((await submit(form())).status).toBe(400);
  });

  it('answers a submission with 400: a mandatory Idempotency-Key is missing', async () => {
    const { submit } = await setup({ switches: { idempotencyKeyRequired: true } });
    expect((await submit(form())).status).toBe(400);
    expect((await submit(form(), 'environment=prod', { 'idempotency-key': '' })).status).toBe(400);
    expect((await submit(form(), 'environment=prod', { 'idempotency-key': 'k' })).status).toBe(202);
  });

  it('answers a submission with 404: document type not found', async () => {
    const { submit } = await setup();
    const { status, json } = await submit(form({ documentType: 'brief' }));
    expect(status).toBe(404);
    expect(json.error).toMatch(german);
  });

  it.each([
    ['cursor and since both given', `cursor=CURSOR&since=${noon}`],
    ['cursor and since both given, empty', 'cursor=&since='],
    ['invalid cursor', 'cursor=abc'],
    ['empty cursor', 'cursor='],
    ['cursor given twice', 'cursor=CURSOR&cursor=CURSOR'],
    ['invalid since', 'since=gestern'],
    ['since on a day that does not exist', 'since=2026-02-30T00:00:00Z'],
    ['since at an hour that does not exist', 'since=2026-02-03T25:00:00Z'],
    ['negative since', 'since=-1'],
    ['since with an unencoded plus', 'since=2026-02-03T00:00:00+01:00'],
    ['invalid status', 'status=done'],
    ['status processing', 'status=processing'],
    ['one invalid status among valid ones', 'status=completed,processing'],
    ['empty status', 'status='],
    ['status with a trailing comma', 'status=completed,'],
    ['invalid environment', 'environment=staging'],
    ['empty environment', 'environment='],
    ['limit 0', 'limit=0'],
    ['limit 201', 'limit=201'],
    ['negative limit', 'limit=-5'],
    ['limit that is no whole number', 'limit=1.5'],
    ['limit that is no number', 'limit=viele'],
    ['empty limit', 'limit='],
  ])('answers the feed with 400: %s', async (_, query) => {
    const { get, page } = await setup({ history: 3 });
    const { nextCursor } = await page('limit=1');
    const { status, json } = await get(`/scans?${query.replaceAll('CURSOR', nextCursor)}`);
    expect(status).toBe(400);
    expect(Object.keys(json)).toEqual(['error']);
    expect(json.error).toMatch(german);
  });

  it('answers the feed with 404: the document type was not found', async () => {
    const { get } = await setup({ history: 3 });
    const { status, json } = await get('/scans?documentType=brief');
    expect(status).toBe(404);
    expect(json.error).toMatch(german);
  });

  it('answers 404 for addresses outside the interface', async () => {
    const { get, submit } = await setup();
    expect((await get('/')).status).toBe(404);
    expect((await get('/scans/')).status).toBe(404);
    expect((await submit(form(), '/x')).status).not.toBe(202);
  });

  it('gives a failed run as an entry, not as an HTTP error', async () => {
    const { emulator, get } = await setup();
    const [run] = emulator.appendRuns([{ status: 'failed' }]);
    expect((await get(`/scans/${run?.scanId}`)).status).toBe(200);
  });
});
