import { describe, expect, it } from 'vitest';
import { UNFILTERED } from '../../src/core/feed-filters.js';
import { followFeed } from '../../src/library/follow-feed.js';
import { InvalidArgumentError } from '../../src/service/errors/service-error.js';
import { pageJson } from '../support/entries.js';
import { reply } from '../support/scripted-service.js';
import { KEY, never, page, pdf, rejection, useService } from './harness.js';

const context = useService();
const emptyPage = reply(200, pageJson([]));
const accepted = reply(202, {
  scanId: 's-1',
  status: 'processing',
  statusUrl: 'https://elsewhere.example/v1/scans/s-1',
});

describe('a feed request', () => {
  it('has every filter and the limit, and a path below the base URL', async () => {
    context.service.answer(emptyPage);
    await context.client().readPage(page, never);
    const { method, path, query } = context.service.last;
    expect({ method, path, query: Object.fromEntries(query) }).toEqual({
      method: 'GET',
      path: '/v1/scans',
      query: { status: 'completed,failed', environment: 'prod', limit: '200' },
    });
  });

  it('has document type, markdown and cursor when given, encoded so that the cursor is received unchanged', async () => {
    context.service.answer(emptyPage);
    const cursor = 'a+b/c= &d#é%20';
    const filters = { ...UNFILTERED, status: ['failed'], documentType: 'lieferschein & co' } as const;
    await context.client().readPage({ filters, start: { cursor }, limit: 1, markdown: true }, never);
    expect(Object.fromEntries(context.service.last.query)).toEqual({
      status: 'failed',
      environment: 'all',
      documentType: 'lieferschein & co',
      limit: '1',
      markdown: 'true',
      cursor,
    });
    expect(context.service.last.url).toContain('cursor=a%2Bb%2Fc%3D%20%26d%23');
  });

  it('has since as ISO 8601 with milliseconds, and no cursor', async () => {
    context.service.answer(emptyPage);
    await context.client().readPage({ ...page, start: { since: new Date(1_767_225_600_007) } }, never);
    expect(context.service.last.query.get('since')).toBe('2026-01-01T00:00:00.007Z');
    expect(context.service.last.query.has('cursor')).toBe(false);
  });

  it('has all documented defaults when a library user sets nothing', async () => {
    context.service.answer(emptyPage);
    await context.client().feedPage();
    expect(Object.fromEntries(context.service.last.query)).toEqual({
      status: 'completed,failed',
      environment: 'prod',
      limit: '50',
    });
  });

  it.each(['2026-01-02T03:04:05+01:00', Date.UTC(2026, 0, 2, 2, 4, 5), new Date(Date.UTC(2026, 0, 2, 2, 4, 5))])(
    'starts at a time when since is %s',
    async (since) => {
      context.service.answer(emptyPage);
      await context.client().feedPage({ since });
      expect(context.service.last.query.get('since')).toBe('2026-01-02T02:04:05.000Z');
    },
  );

  it('is not sent when its signal is where it would be ignored', async () => {
    const { signal } = new AbortController();
    const client = context.client();
    const misplaced = [
      () => client.readPage(signal as never),
      () => client.readPage({ ...page, signal: 'abort' } as never),
      () => client.readRun('scan-1', signal as never),
      () => client.feedPage(signal as never),
      () => client.getRun('scan-1', signal as never),
      () => client.feedPage({}, { signal } as never),
      () => client.getRun('scan-1', {}, { signal } as never),
      () => client.submit(pdf, { signal } as never),
      () => followFeed(client, signal as never).next(),
      () => followFeed(client, {}, { signal } as never).next(),
    ];
    for (const send of misplaced)
      expect(await rejection(send())).toMatchObject({
        kind: 'invalid_argument',
        message: expect.stringContaining('signal'),
      });
    expect(context.service.requests).toEqual([]);
  });

  it('is cancelled by the signal among its options', async () => {
    const client = context.client();
    const signal = AbortSignal.abort(new Error('too late'));
    const requests = [
      client.readPage({ ...page, signal }),
      client.readRun('scan-1', { markdown: false, signal }),
      client.feedPage({ signal }),
      client.getRun('scan-1', { signal }),
      client.submit({ ...pdf, signal }),
    ];
    for (const request of requests) expect(await rejection(request)).toBe(signal.reason);
    expect(context.service.requests).toEqual([]);
  });

  it.each([
    ['cursor and since together', { cursor: 'c', since: new Date(0) }],
    ['an empty cursor', { cursor: '' }],
    ['an invalid since', { since: new Date(Number.NaN) }],
    ['a since that is not a time', { since: 'yesterday' }],
    ['limit 0', { limit: 0 }],
    ['limit 201', { limit: 201 }],
    ['limit 1.5', { limit: 1.5 }],
    ['no status', { status: [] }],
    ['an unknown status', { status: ['processing' as never] }],
    ['an unknown environment', { environment: 'production' as never }],
    ['a status that is not in a list', { status: 'completed' as never }],
    ['an empty document type', { documentType: '' }],
    ['half a surrogate pair', { cursor: '\ud800' }],
  ])('is not sent when it has %s', async (_, query) => {
    expect(await rejection(context.client().feedPage(query))).toBeInstanceOf(InvalidArgumentError);
    expect(context.service.requests).toEqual([]);
  });
});

describe('a request for a single run', () => {
  it('encodes the scan id into one path segment', async () => {
    context.service.answer(reply(200, { scanId: 'a/b?c#d é' }));
    await context.client().readRun('a/b?c#d é', { markdown: false, maxBytes: 1000 }, never);
    expect(context.service.last.url).toBe('/v1/scans/a%2Fb%3Fc%23d%20%C3%A9');
  });

  it('requests markdown only when wanted', async () => {
    context.service.answer(reply(200, {}));
    await context.client().readRun('s', { markdown: true, maxBytes: 1000 }, never);
    expect(context.service.last.url).toBe('/v1/scans/s?markdown=true');
  });

  it.each(['', '.', '..', '\udfff', undefined as never])(
    'is not sent for %j, which would lead to another path',
    async (scanId) => {
      const error = await rejection(context.client().readRun(scanId, { markdown: false, maxBytes: 1000 }, never));
      expect(error).toMatchObject({ kind: 'invalid_argument', message: expect.stringContaining('scanId') });
      expect(context.service.requests).toEqual([]);
    },
  );
});

describe('a submission', () => {
  async function formOf(): Promise<FormData> {
    const { headers, body } = context.service.last;
    return new Response(new Uint8Array(body), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData();
  }

  it('posts one PDF with its name and type, the document type, the environment and the Idempotency-Key', async () => {
    context.service.answer(accepted);
    await context
      .client()
      .submit({ ...pdf, environment: 'test', fileName: 'Müller "2".pdf', idempotencyKey: 'order-17' });
    const { method, url, headers } = context.service.last;
    expect([method, url, headers['idempotency-key']]).toEqual(['POST', '/v1/scans?environment=test', 'order-17']);
    const form = await formOf();
    expect(form.get('documentType')).toBe('rechnung');
    const file = form.get('file') as File;
    expect([file.name, file.type, await file.text()]).toEqual([
      'Müller "2".pdf',
      'application/pdf',
      '%PDF-1.7 canary-content',
    ]);
    expect([...form.keys()]).toEqual(['documentType', 'file']);
  });

  it('accepts a Blob and sends it as a PDF', async () => {
    context.service.answer(accepted);
    await context.client().submit({ ...pdf, file: new Blob(['%PDF-2'], { type: 'text/plain' }) });
    const file = (await formOf()).get('file') as File;
    expect([file.type, await file.text()]).toEqual(['application/pdf', '%PDF-2']);
    expect(context.service.last.headers).not.toHaveProperty('idempotency-key');
  });

  it.each([
    ['a line end', 'a\r\nx-evil: 1'],
    ['a space', 'a b'],
    ['nothing', ''],
  ])('is not sent when the Idempotency-Key has %s', async (_, idempotencyKey) => {
    expect(await rejection(context.client().submit({ ...pdf, idempotencyKey }))).toBeInstanceOf(InvalidArgumentError);
    expect(context.service.requests).toEqual([]);
  });

  it('is not sent when the file is a path', async () => {
    const error = await rejection(context.client().submit({ ...pdf, file: 'invoice.pdf' as never }));
    expect(error).toMatchObject({ kind: 'invalid_argument', message: expect.stringContaining('file') });
    expect(context.service.requests).toEqual([]);
  });

  it.each(['fileName', 'documentType'])('is not sent when its %s is empty or missing', async (name) => {
    for (const value of ['', undefined]) {
      const error = await rejection(context.client().submit({ ...pdf, [name]: value as never }));
      expect(error).toMatchObject({ kind: 'invalid_argument', message: expect.stringMatching(`^${name} must`) });
    }
    expect(context.service.requests).toEqual([]);
  });

  it('is not sent when it has no environment, which has no default', async () => {
    const request = { ...pdf, environment: undefined } as unknown as Parameters<
      ReturnType<typeof context.client>['submit']
    >[0];
    expect(await rejection(context.client().submit(request))).toBeInstanceOf(InvalidArgumentError);
    expect(context.service.requests).toEqual([]);
  });
});

describe('every request', () => {
  it('has the key, requests JSON without compression, and names its sender', async () => {
    context.service.answer(emptyPage);
    await context.client({ userAgent: 'scanfeed/1.2.3' }).readPage(page, never);
    expect(context.service.last.headers).toMatchObject({
      authorization: `Bearer ${KEY}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'scanfeed/1.2.3',
    });
  });

  it('reads the key again, so that it can be rotated', async () => {
    context.service.answer(emptyPage, emptyPage);
    const keys = ['first', 'second'];
    const client = context.client({ apiKey: async () => keys.shift() ?? '' });
    await client.readPage(page, never);
    await client.readPage(page, never);
    expect(context.service.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
    ]);
  });

  it('runs concurrently with others', async () => {
    context.service.answer();
    const client = context.client();
    const both = Promise.all([client.readPage(page, never), client.readPage(page, never)]);
    await context.service.arrived(2); // neither has been answered yet
    expect(context.service.connections).toBe(2);
    both.catch(() => undefined);
  });

  it('accepts a base URL that ends with a slash', async () => {
    context.service.answer(emptyPage);
    await context.client({ baseUrl: `${context.service.baseUrl}/` }).readPage(page, never);
    expect(context.service.last.path).toBe('/v1/scans');
  });

  it('leaves no listeners on a shared signal and causes no warnings', async () => {
    const warnings: Error[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on('warning', listen);
    const { signal } = new AbortController();
    const client = context.client();
    context.service.answer(...Array.from({ length: 30 }, () => emptyPage));
    await Promise.all(Array.from({ length: 30 }, () => client.readPage(page, signal)));
    await new Promise(setImmediate);
    process.off('warning', listen);
    expect(warnings).toEqual([]);
  });
});

describe('a base URL', () => {
  it.each([
    ['not a URL', 'recognition'],
    ['of another protocol', 'ftp://recognition.example/v1'],
    ['plain HTTP to another machine', 'http://recognition.example/v1'],
    ['with a password', 'https://user:canary-password@recognition.example/v1'],
    ['with a query', 'https://recognition.example/v1?canary-password'],
    ['with a fragment', 'https://recognition.example/v1#canary-password'],
  ])('is rejected without being quoted when it is %s', (_, baseUrl) => {
    expect(() => context.client({ baseUrl })).toThrow(InvalidArgumentError);
    expect(() => context.client({ baseUrl })).not.toThrow(/canary/);
    expect(() => context.client({ baseUrl })).toThrow(/baseUrl|allowHttp/);
  });

  it('may be plain HTTP to another machine when that is allowed', () => {
    expect(context.client({ baseUrl: 'http://recognition.example/v1', allowHttp: true })).toBeDefined();
  });
});
