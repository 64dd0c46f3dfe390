import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { entryJson, pageJson, raw as rawJson } from '../support/entries.js';
import { raw, reply } from '../support/scripted-service.js';
import { never, operations, page, pdf, rejection, textOf, useService } from './harness.js';

const context = useService();
const readPage = () => context.client().readPage(page, never);

const UNKNOWN_MS = 10 * 365 * 24 * 3_600_000;

describe('a page as received', () => {
  it('keeps every digit in its bytes', async () => {
    const json = pageJson([entryJson({ data: { n: rawJson('12345678901234567890'), price: rawJson('1.10') } })]);
    context.service.answer(reply(200, json));
    const { body, items } = await readPage();
    expect(Buffer.from(body).toString()).toBe(json);
    expect(items).toHaveLength(1);
  });

  it('accepts entries of any shape, so that one bad entry does not hide the others', async () => {
    context.service.answer(reply(200, pageJson(['null', '7', '{"revision":"x"}'])));
    expect((await readPage()).items).toEqual([null, 7, { revision: 'x' }]);
  });

  it.each([
    ['missing', '{"items":[]}'],
    ['null', '{"items":[],"nextCursor":null}'],
  ])('has no next cursor when that is %s', async (_, json) => {
    context.service.answer(reply(200, json));
    expect((await readPage()).nextCursor).toBeNull();
  });

  it.each([
    ['empty', '{"items":[],"nextCursor":""}'],
    ['a number', '{"items":[],"nextCursor":5}'],
    ['longer than 64 KiB on a large page', JSON.stringify({ items: [], nextCursor: 'c'.repeat(2 * 1024 * 1024) })],
  ])('has an empty next cursor when that is %s', async (_, json) => {
    context.service.answer(reply(200, json));
    expect((await readPage()).nextCursor).toBe('');
  });

  it('has the next cursor and the date of the service', async () => {
    context.service.answer(reply(200, pageJson([], 'c-2'), { date: 'Fri, 02 Jan 2026 08:59:58 GMT' }));
    expect(await readPage()).toMatchObject({ nextCursor: 'c-2', serviceDate: new Date('2026-01-02T08:59:58Z') });
  });

  it.each([
    [
      { age: '17', via: '1.1 varnish (Varnish/7.5)' },
      18_000,
      { evidence: 'Age: 17', name: '1.1 varnish (Varnish/7.5)' },
    ],
    [{ 'x-cache': 'MISS, HIT' }, UNKNOWN_MS, { evidence: 'x-cache: hit', name: null }],
    [{ 'cache-status': 'edge; hit; ttl=30', age: '0' }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cf-cache-status': 'STALE', age: '99999999999' }, UNKNOWN_MS, { evidence: 'cf-cache-status: hit' }],
    [{ 'cache-status': 'origin; fwd=stale, edge; hit' }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cache-status': 'edge; hit=?1' }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cache-status': 'HIT' }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cache-status': ['shield; fwd=miss', 'edge; hit'] }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cache-status': 'edge; fwd=stale; fwd-status=503' }, UNKNOWN_MS, { evidence: 'cache-status: hit' }],
    [{ 'cache-status': 'edge; fwd=stale; fwd-status=304', age: '0' }, 1_000, null],
    [{ age: '2147483648' }, UNKNOWN_MS, { evidence: 'Age: 2147483648' }],
    [{ 'x-cache': 'RefreshHit from cloudfront', age: '0' }, 1_000, null],
    [{ 'x-cache': 'TCP_REFRESH_HIT from squid', age: '0' }, 1_000, null],
    [{ 'x-cache': 'MISS', age: 'soon' }, 0, null],
    [{ age: ['0', '3600'] }, 3_601_000, { evidence: 'Age: 3600' }],
    [{ age: '17, 5' }, 18_000, { evidence: 'Age: 17' }],
  ] as const)('has its maximum age, and the cache that gave it, if it shows one: %j', async (headers, ageMs, cache) => {
    context.service.answer(reply(200, pageJson([]), headers));
    const page = await readPage();
    expect(page.ageMs).toBe(ageMs);
    expect(page.cache).toEqual(cache === null ? null : expect.objectContaining(cache));
    expect(context.service.requests[0]?.headers).toMatchObject({ 'cache-control': 'no-cache' });
  });

  it('has no date when the service sends none, an invalid one, or that of a clock that was never set', async () => {
    const body = pageJson([]);
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    const dated = (date: string) => raw(`${head}date: ${date}\r\n\r\n${body}`);
    const unset = dated('Thu, 01 Jan 1970 00:00:09 GMT');
    context.service.answer(raw(`${head}\r\n${body}`), dated('soon'), unset);
    const client = context.client();
    for (let n = 0; n < 3; n += 1) expect((await client.readPage(page, never)).serviceDate).toBeNull();
  });

  it('keeps bytes that are not UTF-8, and has U+FFFD for them when parsed', async () => {
    const bytes = Buffer.concat([Buffer.from('{"items":["'), Buffer.from([0xff]), Buffer.from('"],"nextCursor":"c"}')]);
    context.service.answer(reply(200, bytes));
    const answer = await readPage();
    expect(answer.items).toEqual(['\ufffd']);
    expect(Buffer.from(answer.body).equals(bytes)).toBe(true);
  });

  it('omits a byte order mark from its bytes', async () => {
    context.service.answer(reply(200, `\ufeff${pageJson([])}`));
    const { body } = await readPage();
    expect(body[0]).toBe('{'.charCodeAt(0));
  });

  it.each([
    ['an array', '[]', 'not an object'],
    ['null', 'null', 'not an object'],
    ['without items', '{"nextCursor":"c"}', 'items'],
    ['with items that are no array', '{"items":{},"nextCursor":"c"}', 'items'],
  ])('is rejected when it is %s', async (_, json, field) => {
    context.service.answer(reply(200, json));
    const error = await rejection(readPage());
    const message = expect.stringContaining(`does not match the interface: ${field}; `);
    expect(error).toMatchObject({ kind: 'wrong_shape', action: 'hold', message });
  });
});

describe('an answer that has a field twice', () => {
  it.each([
    ['items', `{"items":[${entryJson()}],"nextCursor":"c","items":[]}`],
    ['items', `{"it\\u0065ms":[],"nextCursor":"c","items":[${entryJson()}]}`],
    ['nextCursor', '{"nextCursor":"a","items":[],"nextCursor":"b"}'],
    ['nextCursor', `{"nextCursor":"${'a'.repeat(100_000)}","items":[],"nextCursor":"b"}`],
  ])('is no page: %s', async (field, json) => {
    context.service.answer(reply(200, json));
    const message = expect.stringContaining(`does not match the interface: ${field} (repeated); `);
    const expected = { kind: 'wrong_shape', action: 'hold', message };
    expect(await rejection(readPage())).toMatchObject(expected);
  });

  it.each(['"revision":2', '"partnerTestMode":true', '"rawOcrResult":1,"rawOcrResult":2'])(
    'is no run: %s',
    async (members) => {
      context.service.answer(reply(200, `${entryJson().slice(0, -1)},${members}}`));
      expect(await rejection(operations.run(context.client()))).toMatchObject({ kind: 'wrong_shape', action: 'hold' });
    },
  );

  it('is no submission, and no text of an error', async () => {
    const answer = '{"scanId":"a","status":"processing","statusUrl":"","scanId":"b"}';
    context.service.answer(reply(202, answer), reply(500, '{"error":"Fehler.","error":"Kein Fehler."}'));
    const client = context.client();
    expect(await rejection(client.submit(pdf))).toMatchObject({
      kind: 'wrong_shape',
      message: expect.stringContaining('does not match the interface: scanId (repeated); '),
    });
    expect(await rejection(client.readPage(page, never))).toMatchObject({ kind: 'http_500', germanText: undefined });
  });

  it('is read when only a field that the interface does not know is repeated', async () => {
    context.service.answer(reply(200, '{"x":1,"items":[],"x":2,"nextCursor":"c"}'));
    expect(await readPage()).toMatchObject({ items: [], nextCursor: 'c' });
  });
});

describe('a single run', () => {
  it('is returned as received, up to the allowed size', async () => {
    const json = entryJson({ data: { n: rawJson('1.10') } });
    context.service.answer(reply(200, json), reply(200, json));
    const client = context.client();
    const { body, run } = await client.readRun('scan-1', { markdown: false, maxBytes: json.length }, never);
    expect(Buffer.from(body).toString()).toBe(json);
    expect(run.scanId).toBe('scan-1');
    const tooLarge = await rejection(client.readRun('scan-1', { markdown: false, maxBytes: json.length - 1 }, never));
    expect(tooLarge).toMatchObject({ kind: 'too_large' });
  });

  it('is rejected when it is not an object', async () => {
    context.service.answer(reply(200, '[]'));
    expect(await rejection(operations.run(context.client()))).toMatchObject({ kind: 'wrong_shape' });
  });
});

describe('a submission', () => {
  const submission = { scanId: 's-1', status: 'completed', statusUrl: 'https://elsewhere.example/v1/scans/s-1' };

  it.each([
    [202, true],
    [200, false],
  ])('reports for status %i whether a run was created: %s', async (status, created) => {
    context.service.answer(reply(status, submission));
    expect(await context.client().submit(pdf)).toEqual({ ...submission, created });
  });

  it('is rejected when the response lacks the scan id', async () => {
    context.service.answer(reply(202, { status: 'processing', statusUrl: '' }));
    expect(await rejection(context.client().submit(pdf))).toMatchObject({
      kind: 'wrong_shape',
      message: expect.stringContaining('does not match the interface: scanId; '),
    });
  });
});

describe('a compressed response, although not requested,', () => {
  const json = pageJson([entryJson()]);

  it.each([
    ['gzip', gzipSync(json)],
    ['deflate', deflateSync(json)],
    ['br', brotliCompressSync(json)],
    ['identity', Buffer.from(json)],
  ])('is read when its encoding is %s', async (encoding, bytes) => {
    context.service.answer(reply(200, bytes, { 'content-encoding': encoding }));
    expect(textOf(await readPage())).toBe(json);
  });

  it('is limited by its decompressed size', async () => {
    const bomb = gzipSync(Buffer.alloc(10_000_000, ' '));
    expect(bomb.length).toBeLessThan(20_000);
    context.service.answer(reply(200, bomb, { 'content-encoding': 'gzip' }));
    const error = await rejection(context.client({ maxResponseBytes: 1_000_000 }).readPage(page, never));
    expect(error).toMatchObject({ kind: 'too_large', message: expect.stringContaining(' the 1000000 bytes allowed;') });
  });

  it('is not read further while there is no memory for more, until the request is aborted', async () => {
    const answer = gzipSync(pageJson([entryJson({ data: { text: ' '.repeat(10_000_000) } })]));
    context.service.answer(reply(200, answer, { 'content-encoding': 'gzip' }));
    const stop = new AbortController();
    const counts: number[] = [];
    const reserve = async (bytes: number) => {
      counts.push(bytes);
      if (bytes <= 100_000) return;
      setTimeout(() => stop.abort(new Error('no room')), 100);
      await new Promise(() => {});
    };
    const error = await rejection(context.client().readPage({ ...page, maxBytes: 20_000_000, reserve }, stop.signal));
    expect(error).toMatchObject({ message: 'no room' });
    context.service.answer(reply(200, json));
    await readPage();
    expect(Math.max(...counts)).toBeLessThan(1_000_000);
  });

  it('is a truncated body, to be requested again, when it ends early', async () => {
    context.service.answer(reply(200, gzipSync(json).subarray(0, 60), { 'content-encoding': 'gzip' }));
    const error = await rejection(readPage());
    expect(error).toMatchObject({ kind: 'cut_body' });
    expect(error).toMatchObject({ action: 'retry' });
  });

  it.each(['zstd', 'gzip, gzip', 'constructor'])('is rejected when its encoding is %s', async (encoding) => {
    context.service.answer(reply(200, 'x', { 'content-encoding': encoding }));
    expect(await rejection(readPage())).toMatchObject({ kind: 'not_json' });
  });
});
