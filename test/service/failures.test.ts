import { describe, expect, it } from 'vitest';
import type * as errors from '../../src/index.js';
import { createDispatcher } from '../../src/service/http/dispatcher.js';
import type { RequestObservation } from '../../src/service/http/exchange.js';
import { entryJson, pageJson } from '../support/entries.js';
import { hangUp, raw, refuse, reply, reset, silence, stall } from '../support/scripted-service.js';
import { HandClock, never, operations, page, pdf, rejection, textOf, useService } from './harness.js';

const context = useService();
const readPage = (signal = never) => context.client().readPage(page, signal);
const json = pageJson([entryJson()]);
const emptyPage = reply(200, pageJson([]));
const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

function onOneConnection() {
  const dispatcher = createDispatcher({ connections: 1 });
  return { dispatcher, client: context.client({ dispatcher }) };
}

describe('a response that is not JSON', () => {
  it.each([
    ['HTML', reply(200, '<html>canary</html>', { 'content-type': 'text/html; charset=utf-8' })],
    ['JSON under another content type', reply(200, json, { 'content-type': 'text/plain' })],
    ['204', (response: Parameters<ReturnType<typeof reply>>[0]) => void response.writeHead(204).end()],
    ['an empty body', reply(200, '')],
    ['broken JSON of full length', reply(200, '{"canary":')],
    ['bytes that are no text', reply(200, Buffer.from([0xff, 0xfe, 0x7b, 0x00]))],
  ])('(%s) is reported with size and hash, but without content', async (_, answer) => {
    context.service.answer(answer);
    const error = (await rejection(readPage())) as errors.ServiceError;
    expect(error).toMatchObject({ kind: 'not_json', action: 'hold' });
    expect(error.message).toMatch(/\(\d+ bytes, sha256 [0-9a-f]{12}…\)/);
    expect(error.message).not.toContain('canary');
  });

  it.each([
    ['in one entry', '{"items":[{"scanId":"a"},{"scanId":"canary" "revision":1}],"nextCursor":"x"}', 'at byte 44,'],
    ['of a large body', `{"items":["${'x'.repeat(2_000_000)}",canary]}`, 'at byte 2000013,'],
    ['at the end', '{"items":[{"scanId":"canary"', 'the text ends too early'],
  ])('reports the position of a syntax error %s', async (_, text, where) => {
    context.service.answer(reply(200, text));
    const { message } = (await rejection(readPage())) as Error;
    expect(message).toContain(where);
    expect(message).toContain(`(${text.length} bytes, `);
    expect(message).not.toContain('canary');
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/problem+json'])(
    'accepts JSON of type %s',
    async (type) => {
      context.service.answer(reply(200, json, { 'content-type': type }));
      expect((await readPage()).items).toHaveLength(1);
    },
  );

  it('accepts JSON without a content type', async () => {
    context.service.answer(raw(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`));
    expect((await readPage()).items).toHaveLength(1);
  });
});

describe('a truncated body', () => {
  it.each([
    ['below its Content-Length', raw(`${head}content-length: 5000\r\n\r\n${json}`)],
    ['below its Content-Length, with close', raw(`${head}connection: close\r\ncontent-length: 5000\r\n\r\n${json}`)],
    ['before its last chunk', raw(`${head}transfer-encoding: chunked\r\n\r\n5\r\n{"ite\r\n`)],
    [
      'before its last chunk, with close',
      raw(`${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"ite\r\n`),
    ],
    ['with a broken chunk', raw(`${head}transfer-encoding: chunked\r\n\r\nzz\r\n{"ite\r\n`)],
    ['by the end of its connection alone', raw(`${head}connection: close\r\n\r\n${json.slice(0, -1)}`)],
  ])('is a temporary error when it ends %s', async (_, answer) => {
    context.service.answer(answer);
    const error = await rejection(readPage());
    expect(error).toMatchObject({ kind: 'cut_body' });
    expect(error).toMatchObject({ kind: 'cut_body', action: 'retry', status: 200 });
    expect(context.service.requests).toHaveLength(1);
  });

  it('accepts complete JSON that ends with its connection', async () => {
    context.service.answer(raw(`${head}connection: close\r\n\r\n${json}`));
    expect(textOf(await readPage())).toBe(json);
  });
});

describe('the timeout', () => {
  /** Sends a request whose deadline passes after the service received it and ran `answer`. */
  async function expire(answer = silence, operation: keyof typeof operations = 'feed'): Promise<unknown> {
    const clock = new HandClock();
    context.service.answer(answer);
    const failed = rejection(operations[operation](context.client({ clock, requestTimeoutMs: 5_000 })));
    await context.service.arrived(1);
    clock.expire();
    return failed;
  }

  it.each(['feed', 'run', 'submit'] as const)('of %s ends a request that is never answered', async (operation) => {
    const error = await expire(silence, operation);
    expect(error).toMatchObject({ kind: 'timeout' });
    expect(error).toMatchObject({ kind: 'timeout', action: 'retry' });
    expect((error as Error).message).toContain('5000 ms');
  });

  it('ends a body that drips, which an idle timeout would not', async () => {
    expect(await expire(stall(`${head}content-length: 100\r\n\r\n`, '{'))).toMatchObject({ kind: 'timeout' });
  });

  it('ends a header that never ends', async () => {
    expect(await expire(stall('HTTP/1.1 200 OK\r\n', 'x-a: 1\r\n'))).toMatchObject({ kind: 'timeout' });
  });

  it('ends an error body that never ends', async () => {
    expect(await expire(stall('HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\n'))).toMatchObject({ kind: 'timeout' });
  });

  it('does not include the wait for memory, after which it continues', async () => {
    const clock = new HandClock();
    context.service.answer(stall(`${head}content-length: 100\r\n\r\n{`));
    const client = context.client({ clock, requestTimeoutMs: 5_000 });
    let failed: Promise<unknown> = Promise.resolve();
    const grant = await new Promise<() => void>((waits) => {
      const reserve = () => new Promise<void>((granted) => waits(granted));
      failed = rejection(client.readPage({ ...page, reserve }, never));
    });
    expect(clock.waiting).toEqual([]);
    grant();
    await expect.poll(() => clock.waiting).toMatchObject([{ ms: 5_000 }]);
    clock.expire();
    expect(await failed).toMatchObject({ kind: 'timeout' });
  });

  it('includes the wait for a key', async () => {
    const clock = new HandClock();
    const client = context.client({ clock, apiKey: () => new Promise(() => undefined) });
    const failed = rejection(operations.feed(client));
    clock.expire();
    expect(await failed).toMatchObject({ kind: 'timeout' });
  });

  it('includes the wait for a connection', async () => {
    const dispatcher = createDispatcher({ connections: 1 });
    const clock = new HandClock();
    context.service.answer(silence);
    const first = rejection(operations.feed(context.client({ dispatcher })));
    await context.service.arrived(1);
    const second = rejection(operations.feed(context.client({ dispatcher, clock })));
    clock.expire();
    expect(await second).toMatchObject({ kind: 'timeout' });
    await dispatcher.destroy();
    expect(await first).toMatchObject({ kind: 'closed' });
    expect(context.service.requests).toHaveLength(1);
  });

  it('expires on the system clock', async () => {
    const error = await rejection(operations.feed(context.client({ requestTimeoutMs: 20 })));
    expect(error).toMatchObject({ kind: 'timeout' });
  });

  it('stops its timer when the response is complete', async () => {
    const clock = new HandClock();
    context.service.answer(emptyPage, refuse(500, 'Fehler'));
    const client = context.client({ clock });
    await operations.feed(client);
    await rejection(operations.feed(client));
    expect(clock.waiting).toEqual([]);
  });
});

describe("a caller's abort", () => {
  it('rejects with its reason while the service does not answer', async () => {
    const abort = new AbortController();
    const failed = rejection(readPage(abort.signal));
    await context.service.arrived(1);
    const reason = new Error('shutting down');
    abort.abort(reason);
    expect(await failed).toBe(reason);
  });

  it('rejects with its reason while the request waits for a connection', async () => {
    const { client, dispatcher } = onOneConnection();
    const first = rejection(operations.feed(client));
    await context.service.arrived(1);
    const abort = new AbortController();
    const second = rejection(operations.feed(client, abort.signal));
    abort.abort('enough');
    expect(await second).toBe('enough');
    await dispatcher.destroy();
    await first;
  });

  it('sends nothing when it happened before the request', async () => {
    const reason = new Error('too late');
    expect(await rejection(readPage(AbortSignal.abort(reason)))).toBe(reason);
    expect(context.service.connections).toBe(0);
  });

  it('sends nothing when it happens while the key is read', async () => {
    const abort = new AbortController();
    let give = (_: string) => {};
    const apiKey = () => new Promise<string>((resolve) => (give = resolve));
    const client = context.client({ apiKey });
    const failed = rejection(operations.feed(client, abort.signal));
    abort.abort('enough');
    give('key');
    expect(await failed).toBe('enough');
    context.service.answer(emptyPage);
    const next = operations.feed(client);
    give('key');
    await next;
    expect(context.service.requests).toHaveLength(1);
  });
});

describe('the size', () => {
  it('is an error when Content-Length exceeds the maximum, before anything is read', async () => {
    context.service.answer(stall(`${head}content-length: 1000\r\n\r\n`));
    const error = await rejection(context.client({ maxResponseBytes: 999 }).readPage(page, never));
    expect(error).toMatchObject({ kind: 'too_large', message: expect.stringContaining(' the 999 bytes allowed;') });
  });

  it('is an error when chunks exceed the maximum, even if they never end', async () => {
    context.service.answer(stall(`${head}transfer-encoding: chunked\r\n\r\n3e8\r\n${' '.repeat(1000)}\r\n`));
    const error = await rejection(context.client({ maxResponseBytes: 999 }).readPage(page, never));
    expect(error).toMatchObject({ kind: 'too_large' });
  });

  it('is an error when a page has far more entries than allowed', async () => {
    context.service.answer(reply(200, `{"items":[${'{},'.repeat(4_999)}{}],"nextCursor":"c"}`));
    const error = await rejection(context.client().readPage({ ...page, limit: 50 }, never));
    expect(error).toMatchObject({ kind: 'too_many_entries', action: 'hold' });
    expect((error as Error).message).toMatch(/5000 entries, though at most 50 were requested/);
  });

  it('is an error when the response to a submission exceeds 1 MiB', async () => {
    context.service.answer(reply(202, `{"other":"${' '.repeat(2 ** 20)}"}`));
    const message = expect.stringContaining(` the ${2 ** 20} bytes allowed;`);
    expect(await rejection(context.client().submit(pdf))).toMatchObject({ kind: 'too_large', message });
  });

  it('is accepted at the maximum', async () => {
    context.service.answer(reply(200, json));
    const client = context.client({ maxResponseBytes: Buffer.byteLength(json) });
    expect((await client.readPage(page, never)).items).toHaveLength(1);
  });

  it('has a lower maximum when a request sets one', async () => {
    context.service.answer(reply(200, json));
    const error = await rejection(context.client().readPage({ ...page, maxBytes: 50 }, never));
    expect(error).toMatchObject({ kind: 'too_large', message: expect.stringContaining(' the 50 bytes allowed;') });
  });

  it('is an error when a header exceeds 16 KiB', async () => {
    context.service.answer(raw(`${head}x-large: ${'x'.repeat(20_000)}\r\n\r\n`));
    expect(await rejection(readPage())).toMatchObject({ kind: 'bad_http', code: 'UND_ERR_HEADERS_OVERFLOW' });
  });
});

describe('a connection', () => {
  it('is a temporary error with origin and code when it is refused', async () => {
    const { baseUrl } = context.service;
    await context.service.stop();
    const error = (await rejection(context.client({ baseUrl }).readPage(page, never))) as errors.ServiceError;
    expect(error).toMatchObject({ kind: 'connection', action: 'retry', code: 'ECONNREFUSED' });
    expect(error.message).toContain(new URL(baseUrl).origin);
  });

  it('is an error when the server does not speak HTTP', async () => {
    context.service.answer(raw('SSH-2.0-OpenSSH_9.9\r\n'));
    expect(await rejection(readPage())).toMatchObject({ kind: 'bad_http', action: 'retry' });
  });

  it.each([
    ['ended', hangUp],
    ['reset', reset],
  ])('is replaced for a GET when the service %s it while idle', async (_, end) => {
    context.service.answer(emptyPage, end, reply(200, json));
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(textOf(await client.readPage(page, never))).toBe(json);
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
    await dispatcher.destroy();
  });

  it('is an error when it is closed again', async () => {
    context.service.answer(emptyPage, reset, reset, emptyPage);
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(await rejection(client.readPage(page, never))).toMatchObject({ kind: 'connection', action: 'retry' });
    expect(context.service.requests).toHaveLength(3);
    await dispatcher.destroy();
  });

  it('is an error when it was new and is closed', async () => {
    context.service.answer(hangUp, emptyPage);
    expect(await rejection(readPage())).toMatchObject({ kind: 'connection' });
    expect(context.service.requests).toHaveLength(1);
  });

  it('is an error when it is closed during a submission, which may have been accepted', async () => {
    context.service.answer(emptyPage, hangUp, emptyPage);
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(await rejection(operations.submit(client))).toMatchObject({ kind: 'connection' });
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 1]);
    await dispatcher.destroy();
  });

  it('is free again after an error body of any size', async () => {
    const { client, dispatcher } = onOneConnection();
    for (const body of ['{"error":"kurz"}', JSON.stringify({ error: 'x'.repeat(1_000_000) })]) {
      context.service.answer(reply(500, body), emptyPage);
      await rejection(client.readPage(page, never));
      expect((await client.readPage(page, never)).items).toEqual([]);
    }
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 1, 1, 2]);
    await dispatcher.destroy();
  });
});

describe('a redirect', () => {
  it('is an error and never followed, not even to the same origin', async () => {
    for (const location of [`${context.service.baseUrl}/scans`, 'https://elsewhere.example/']) {
      context.service.answer(refuse(302, 'woanders', { location }));
      const error = (await rejection(readPage())) as errors.HttpStatusError;
      expect(error).toMatchObject({ name: 'HttpStatusError', kind: 'redirect' });
      expect(error.message).not.toContain('elsewhere');
    }
    expect(context.service.requests).toHaveLength(2);
  });
});

describe('closing the client', () => {
  it('cancels running requests and rejects later ones', async () => {
    const client = context.client();
    const running = rejection(operations.feed(client));
    await context.service.arrived(1);
    await client.close();
    expect(await running).toMatchObject({ kind: 'closed' });
    expect(await rejection(operations.feed(client))).toMatchObject({ kind: 'closed' });
    expect(context.service.requests).toHaveLength(1);
  });

  it('does not destroy a dispatcher that it was given', async () => {
    const dispatcher = createDispatcher();
    await context.client({ dispatcher }).close();
    context.service.answer(emptyPage);
    expect((await context.client({ dispatcher }).readPage(page, never)).items).toEqual([]);
    await dispatcher.destroy();
  });
});

describe('the observer', () => {
  it('is called once for every request with operation, status or kind, and duration', async () => {
    const clock = new HandClock();
    const heard: RequestObservation[] = [];
    const client = context.client({ clock, onRequest: (observation) => heard.push(observation) });
    const abort = new AbortController();

    context.service.answer(emptyPage, refuse(503, 'Fehler'), reply(200, '<'), refuse(302, 'x'));
    await operations.feed(client);
    await rejection(operations.submit(client));
    await rejection(operations.run(client));
    await rejection(operations.run(client));
    context.service.answer(silence, silence);
    const expiring = rejection(operations.feed(client));
    await context.service.arrived(5);
    clock.expire();
    await expiring;
    const aborting = rejection(operations.feed(client, abort.signal));
    await context.service.arrived(6);
    abort.abort();
    await aborting;

    expect(heard).toEqual([
      { operation: 'feed', status: 200, durationMs: 0, cache: null },
      { operation: 'submit', status: 503, durationMs: 0, cache: null },
      { operation: 'run', status: 'not_json', durationMs: 0, cache: null },
      { operation: 'run', status: 302, durationMs: 0, cache: null },
      { operation: 'feed', status: 'timeout', durationMs: 30_000, cache: null },
      { operation: 'feed', status: 'aborted', durationMs: 0, cache: null },
    ]);
  });
});
