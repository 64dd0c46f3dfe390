import { describe, expect, it } from 'vitest';
import { form, noon, setUp } from './client.js';

const german = /^[A-ZÄÖÜ„].*\.$/;

describe('errors (interface 7)', () => {
  it.each([
    ['no environment', form(), ''],
    ['an empty environment', form(), 'environment='],
    ['an invalid environment', form(), 'environment=all'],
    ['two environments', form(), 'environment=prod&environment=test'],
    ['no file', form({ file: null }), 'environment=prod'],
    ['a file in another field', form({ field: 'document' }), 'environment=prod'],
    ['a file that is not application/pdf', form({ type: 'image/png' }), 'environment=prod'],
    ['a file that is not a PDF despite its type', form({ file: 'GIF89a' }), 'environment=prod'],
    ['an empty file', form({ file: '' }), 'environment=prod'],
    ['no document type', form({ documentType: null }), 'environment=prod'],
    ['an empty document type', form({ documentType: '' }), 'environment=prod'],
  ])('answers 400 when a submission has %s', async (_, data, query) => {
    const { submit, emulator } = await setUp();
    const { status, json } = await submit(data, query);
    expect(status).toBe(400);
    expect(Object.keys(json)).toEqual(['error']);
    expect(json.error).toMatch(german);
    expect([...emulator.entries()]).toEqual([]);
  });

  it('answers 400 when a submission has several files', async () => {
    const { submit } = await setUp();
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
      'incomplete multipart',
      '--x\r\nContent-Disposition: form-data; name="file"',
      { 'content-type': 'multipart/form-data; boundary=x' },
    ],
    ['empty', undefined, {}],
  ])('answers 400 when the body of a submission is %s', async (_, body, headers: Record<string, string>) => {
    const { submit } = await setUp();
    const { status, json } = await submit(body, 'environment=prod', headers);
    expect(status).toBe(400);
    expect(json.error).toMatch(german);
  });

  it('answers 400 when the file is too large', async () => {
    const { submit } = await setUp({ switches: { maxFileBytes: 10 } });
    expect((await submit(form())).json.error).toMatch(/zu groß/);
    expect((await submit(form())).status).toBe(400);
  });

  it('answers 400 when a required Idempotency-Key is missing', async () => {
    const { submit } = await setUp({ switches: { idempotencyKeyRequired: true } });
    expect((await submit(form())).status).toBe(400);
    expect((await submit(form(), 'environment=prod', { 'idempotency-key': '' })).status).toBe(400);
    expect((await submit(form(), 'environment=prod', { 'idempotency-key': 'k' })).status).toBe(202);
  });

  it('answers 404 when a submission has an unknown document type', async () => {
    const { submit } = await setUp();
    const { status, json } = await submit(form({ documentType: 'brief' }));
    expect(status).toBe(404);
    expect(json.error).toMatch(german);
  });

  it.each([
    ['both cursor and since', `cursor=CURSOR&since=${noon}`],
    ['both cursor and since, empty', 'cursor=&since='],
    ['an invalid cursor', 'cursor=abc'],
    ['an empty cursor', 'cursor='],
    ['two cursors', 'cursor=CURSOR&cursor=CURSOR'],
    ['an invalid since', 'since=gestern'],
    ['a since whose day does not exist', 'since=2026-02-30T00:00:00Z'],
    ['a since whose hour does not exist', 'since=2026-02-03T25:00:00Z'],
    ['a negative since', 'since=-1'],
    ['a since with an unencoded plus', 'since=2026-02-03T00:00:00+01:00'],
    ['an invalid status', 'status=done'],
    ['the status processing', 'status=processing'],
    ['one invalid status among valid ones', 'status=completed,processing'],
    ['an empty status', 'status='],
    ['a status with a trailing comma', 'status=completed,'],
    ['an invalid environment', 'environment=staging'],
    ['an empty environment', 'environment='],
    ['the limit 0', 'limit=0'],
    ['the limit 201', 'limit=201'],
    ['a negative limit', 'limit=-5'],
    ['a limit that is not a whole number', 'limit=1.5'],
    ['a limit that is not a number', 'limit=viele'],
    ['an empty limit', 'limit='],
  ])('answers 400 when a feed request has %s', async (_, query) => {
    const { get, page } = await setUp({ history: 3 });
    const { nextCursor } = await page('limit=1');
    const { status, json } = await get(`/scans?${query.replaceAll('CURSOR', nextCursor)}`);
    expect(status).toBe(400);
    expect(Object.keys(json)).toEqual(['error']);
    expect(json.error).toMatch(german);
  });

  it('answers 404 when a feed request has an unknown document type', async () => {
    const { get } = await setUp({ history: 3 });
    const { status, json } = await get('/scans?documentType=brief');
    expect(status).toBe(404);
    expect(json.error).toMatch(german);
  });

  it('answers 404 when the address is outside the interface', async () => {
    const { get, submit } = await setUp();
    expect((await get('/')).status).toBe(404);
    expect((await get('/scans/')).status).toBe(404);
    expect((await submit(form(), '/x')).status).not.toBe(202);
  });
});
