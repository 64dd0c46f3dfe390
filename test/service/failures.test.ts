import { describe, expect, it } from 'vitest';
import * as errors from '../../src/index.js';
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

describe('an answer that is not JSON', () => {
  it.each([
    ['HTML', reply(200, '<html>canary</html>', { 'content-type': 'text/html; charset=utf-8' })],
    ['JSON under another content type', reply(200, json, { 'content-type': 'text/plain' })],
    ['204', (response: Parameters<ReturnType<typeof reply>>[0]) => void response.writeHead(204).end()],
    ['an empty body', reply(200, '')],
    ['broken JSON of full length', reply(200, '{"canary":')],
    ['bytes that are no text', reply(200, Buffer.from([0xff, 0xfe, 0x7b, 0x00]))],
  ])('(%s) is held, told by size and hash but not by content', async (_, answer) => {
    context.service.answer(answer);
    const error = (await rejection(readPage())) as errors.NotJsonError;
    expect(error).toBeInstanceOf(errors.NotJsonError);
    expect(error).toMatchObject({ kind: 'not_json', action: 'hold' });
    expect(error.message).toMatch(/\(\d+ bytes, sha256 [0-9a-f]{12}…\)/);
    expect(error.message).not.toContain('canary');
  });

  it.each([
    ['in one entry', '{"items":[{"scanId":"a"},{"scanId":"canary" "revision":1}],"nextCursor":"x"}', 'at byte 44,'],
    ['of a large body', `{"items":["${'x'.repeat(2_000_000)}",canary]}`, 'at byte 2000013,'],
    ['that breaks off', '{"items":[{"scanId":"canary"', 'the text ends too early'],
  ])('says where its syntax is wrong: %s', async (_, text, where) => {
    context.service.answer(reply(200, text));
    const { message } = (await rejection(readPage())) as Error;
    expect(message).toContain(where);
    expect(message).toContain(`(${text.length} bytes, `);
    expect(message).not.toContain('canary');
  });

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/problem+json'])(
    'is not one of type %s',
    async (type) => {
      context.service.answer(reply(200, json, { 'content-type': type }));
      expect((await readPage()).items).toHaveLength(1);
    },
  );

  it('is not one without a content type', async () => {
    context.service.answer(raw(`HTTP/1.1 200 OK\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`));
    expect((await readPage()).items).toHaveLength(1);
  });
});

describe('a body that is cut', () => {
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
  ])('%s is an error, and to be fetched again', async (_, answer) => {
    context.service.answer(answer);
    const error = await rejection(readPage());
    expect(error).toBeInstanceOf(errors.CutBodyError);
    expect(error).toMatchObject({ kind: 'cut_body', action: 'retry', status: 200 });
    expect(context.service.requests).toHaveLength(1);
  });

  it('is not one that the end of its connection completes', async () => {
    context.service.answer(raw(`${head}connection: close\r\n\r\n${json}`));
    expect(textOf(await readPage())).toBe(json);
  });
});

describe('the deadline', () => {
  /** A request whose deadline passes once the service has it, and stands where `answer` left it. */
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
    expect(error).toBeInstanceOf(errors.TimeoutError);
    expect(error).toMatchObject({ kind: 'timeout', action: 'retry' });
    expect((error as Error).message).toContain('5000 ms');
  });

  it('ends a body that drips, which an idle timer would not', async () => {
    expect(await expire(stall(`${head}content-length: 100\r\n\r\n`, '{'))).toBeInstanceOf(errors.TimeoutError);
  });

  it('ends a header that never ends', async () => {
    expect(await expire(stall('HTTP/1.1 200 OK\r\n', 'x-a: 1\r\n'))).toBeInstanceOf(errors.TimeoutError);
  });

  it('ends an error body that never ends', async () => {
    expect(await expire(stall('HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\n'))).toBeInstanceOf(errors.TimeoutError);
  });

  it('counts the wait for a key', async () => {
    const clock = new HandClock();
    const client = context.client({ clock, apiKey: () => new Promise(() => undefined) });
    const failed = rejection(operations.feed(client));
    clock.expire();
    expect(await failed).toBeInstanceOf(errors.TimeoutError);
  });

  it('counts the wait for a connection', async () => {
    const dispatcher = createDispatcher({ connections: 1 });
    const clock = new HandClock();
    context.service.answer(silence);
    const first = rejection(operations.feed(context.client({ dispatcher })));
    await context.service.arrived(1);
    const second = rejection(operations.feed(context.client({ dispatcher, clock })));
    clock.expire();
    expect(await second).toBeInstanceOf(errors.TimeoutError);
    await dispatcher.destroy();
    expect(await first).toBeInstanceOf(errors.ClientClosedError);
    expect(context.service.requests).toHaveLength(1);
  });

  it('passes by the real clock as well', async () => {
    const error = await rejection(operations.feed(context.client({ requestTimeoutMs: 20 })));
    expect(error).toBeInstanceOf(errors.TimeoutError);
  });

  it('leaves no timer behind once an answer is here', async () => {
    const clock = new HandClock();
    context.service.answer(emptyPage, refuse(500, 'Fehler'));
    const client = context.client({ clock });
    await operations.feed(client);
    await rejection(operations.feed(client));
    expect(clock.waiting).toEqual([]);
  });
});

describe("a caller's abort", () => {
  it('rejects with its reason, while the service is silent', async () => {
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

  it('that came before sends nothing', async () => {
    const reason = new Error('too late');
    expect(await rejection(readPage(AbortSignal.abort(reason)))).toBe(reason);
    expect(context.service.connections).toBe(0);
  });

  it('while the key is read sends nothing', async () => {
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

describe('a size', () => {
  it('over the bound is an error, by Content-Length before anything is read', async () => {
    context.service.answer(stall(`${head}content-length: 1000\r\n\r\n`));
    const error = await rejection(context.client({ maxResponseBytes: 999 }).readPage(page, never));
    expect(error).toBeInstanceOf(errors.BodyTooLargeError);
    expect(error).toMatchObject({ kind: 'too_large', maxBytes: 999 });
  });

  it('over the bound is an error where chunks do not tell it, even if they never end', async () => {
    context.service.answer(stall(`${head}transfer-encoding: chunked\r\n\r\n3e8\r\n${' '.repeat(1000)}\r\n`));
    const error = await rejection(context.client({ maxResponseBytes: 999 }).readPage(page, never));
    expect(error).toBeInstanceOf(errors.BodyTooLargeError);
  });

  it('of a page of far more entries than any page may have is an error', async () => {
    context.service.answer(reply(200, `{"items":[${'{},'.repeat(4_999)}{}],"nextCursor":"c"}`));
    const error = await rejection(context.client().readPage({ ...page, limit: 50 }, never));
    expect(error).toBeInstanceOf(errors.TooManyEntriesError);
    expect(error).toMatchObject({ kind: 'too_many_entries', action: 'hold', entries: 5_000 });
    expect((error as Error).message).toMatch(/5000 entries, though 50 at most/);
  });

  it('of the answer to a submission over 1 MiB is an error', async () => {
    context.service.answer(reply(202, `{"other":"${' '.repeat(2 ** 20)}"}`));
    expect(await rejection(context.client().submit(pdf))).toMatchObject({ kind: 'too_large', maxBytes: 2 ** 20 });
  });

  it('at the bound is none', async () => {
    context.service.answer(reply(200, json));
    const client = context.client({ maxResponseBytes: Buffer.byteLength(json) });
    expect((await client.readPage(page, never)).items).toHaveLength(1);
  });

  it('of a page can be bounded more narrowly for one request', async () => {
    context.service.answer(reply(200, json));
    const error = await rejection(context.client().readPage({ ...page, maxBytes: 50 }, never));
    expect(error).toMatchObject({ kind: 'too_large', maxBytes: 50 });
  });

  it('of a header over 16 KiB is an error', async () => {
    context.service.answer(raw(`${head}x-large: ${'x'.repeat(20_000)}\r\n\r\n`));
    expect(await rejection(readPage())).toMatchObject({ kind: 'bad_http', code: 'UND_ERR_HEADERS_OVERFLOW' });
  });
});

describe('a connection', () => {
  it('that is refused is an error to retry, naming where and why', async () => {
    const { baseUrl } = context.service;
    await context.service.stop();
    const error = (await rejection(context.client({ baseUrl }).readPage(page, never))) as errors.ConnectionError;
    expect(error).toMatchObject({ kind: 'connection', action: 'retry', code: 'ECONNREFUSED' });
    expect(error.message).toContain(new URL(baseUrl).origin);
  });

  it('to something else than HTTP is an error', async () => {
    context.service.answer(raw('SSH-2.0-OpenSSH_9.9\r\n'));
    expect(await rejection(readPage())).toMatchObject({ kind: 'bad_http', action: 'retry' });
  });

  it.each([
    ['ended', hangUp],
    ['reset', reset],
  ])('that the service %s while idle is replaced without a word, for a GET', async (_, end) => {
    context.service.answer(emptyPage, end, reply(200, json));
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(textOf(await client.readPage(page, never))).toBe(json);
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 1, 2]);
    await dispatcher.destroy();
  });

  it('that ends again is an error', async () => {
    context.service.answer(emptyPage, reset, reset, emptyPage);
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(await rejection(client.readPage(page, never))).toMatchObject({ kind: 'connection', action: 'retry' });
    expect(context.service.requests).toHaveLength(3);
    await dispatcher.destroy();
  });

  it('that was new and ended is an error', async () => {
    context.service.answer(hangUp, emptyPage);
    expect(await rejection(readPage())).toMatchObject({ kind: 'connection' });
    expect(context.service.requests).toHaveLength(1);
  });

  it('that ends under a submission is an error, as it may have been accepted', async () => {
    context.service.answer(emptyPage, hangUp, emptyPage);
    const { client, dispatcher } = onOneConnection();
    await client.readPage(page, never);
    expect(await rejection(operations.submit(client))).toMatchObject({ kind: 'connection' });
    expect(context.service.requests.map(({ connection }) => connection)).toEqual([1, 1]);
    await dispatcher.destroy();
  });

  it('is free again after an error body, of any size', async () => {
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
      const error = (await rejection(readPage())) as errors.RedirectError;
      expect(error).toBeInstanceOf(errors.RedirectError);
      expect(error.message).not.toContain('elsewhere');
    }
    expect(context.service.requests).toHaveLength(2);
  });
});

describe('closing the client', () => {
  it('ends what runs and refuses what comes after', async () => {
    const client = context.client();
    const running = rejection(operations.feed(client));
    await context.service.arrived(1);
    await client.close();
    expect(await running).toBeInstanceOf(errors.ClientClosedError);
    expect(await rejection(operations.feed(client))).toBeInstanceOf(errors.ClientClosedError);
    expect(context.service.requests).toHaveLength(1);
  });

  it('leaves a dispatcher that it was given to its owner', async () => {
    const dispatcher = createDispatcher();
    await context.client({ dispatcher }).close();
    context.service.answer(emptyPage);
    expect((await context.client({ dispatcher }).readPage(page, never)).items).toEqual([]);
    await dispatcher.destroy();
  });
});

describe('the observer', () => {
  it('hears once of every request: operation, status or kind, and duration', async () => {
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
      { operation: 'feed', status: 200, durationMs: 0 },
      { operation: 'submit', status: 503, durationMs: 0 },
      { operation: 'run', status: 'not_json', durationMs: 0 },
      { operation: 'run', status: 302, durationMs: 0 },
      { operation: 'feed', status: 'timeout', durationMs: 30_000 },
      { operation: 'feed', status: 'aborted', durationMs: 0 },
    ]);
  });
});
