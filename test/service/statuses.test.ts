import { describe, expect, it } from 'vitest';
import * as errors from '../../src/index.js';
import { refuse, reply } from '../support/scripted-service.js';
import { HandClock, operations, rejection, useService } from './harness.js';

const context = useService();

type Operation = keyof typeof operations;
const perform = (operation: Operation) => rejection(operations[operation](context.client()));

/** Interface 7, and what else may come; by operation: kind, action. */
const meanings: [Operation, number, string, string][] = [
  ['submit', 400, 'http_400', 'reject'],
  ['submit', 401, 'http_401', 'hold'],
  ['submit', 403, 'http_403', 'hold'],
  ['submit', 404, 'http_404', 'reject'],
  ['submit', 409, 'http_409', 'reject'],
  ['submit', 422, 'http_422', 'hold'],
  ['submit', 500, 'http_500', 'retry'],
  ['feed', 400, 'http_400', 'hold'],
  ['feed', 401, 'http_401', 'hold'],
  ['feed', 403, 'http_403', 'hold'],
  ['feed', 404, 'http_404', 'hold'],
  ['feed', 409, 'http_409', 'hold'],
  ['feed', 202, 'http_202', 'hold'],
  ['feed', 206, 'http_206', 'hold'],
  ['feed', 500, 'http_500', 'retry'],
  ['run', 400, 'http_400', 'hold'],
  ['run', 401, 'http_401', 'hold'],
  ['run', 403, 'http_403', 'hold'],
  ['run', 404, 'http_404', 'reject'],
  ['run', 500, 'http_500', 'retry'],
  ...(['submit', 'feed', 'run'] as const).flatMap((operation): typeof meanings => [
    [operation, 408, 'http_408', 'retry'],
    [operation, 429, 'http_429', 'retry'],
    [operation, 502, 'http_502', 'retry'],
    [operation, 503, 'http_503', 'retry'],
    [operation, 599, 'http_599', 'retry'],
    [operation, 301, 'redirect', 'hold'],
    [operation, 302, 'redirect', 'hold'],
    [operation, 304, 'redirect', 'hold'],
    [operation, 307, 'redirect', 'hold'],
    [operation, 308, 'redirect', 'hold'],
    [operation, 418, 'http_418', 'hold'],
  ]),
];

describe('a status that is not success', () => {
  it.each(meanings)('has a kind and an action of its own for %s, %i', async (operation, status, kind, action) => {
    context.service.answer(refuse(status, 'Fehler'));
    const error = await perform(operation);
    expect(error).toBeInstanceOf(errors.HttpStatusError);
    expect(error).toMatchObject({ name: 'HttpStatusError', kind, action, status, operation });
    expect(context.service.requests).toHaveLength(1);
  });

  it('says of an unknown run how long a retry makes sense, and says it of no other', async () => {
    context.service.answer(refuse(404, 'Unbekannt.'), refuse(404, 'Unbekannt.'));
    const error = (await perform('run')) as errors.ServiceError;
    expect(error).toMatchObject({ action: 'reject', retryForMs: 120_000 });
    expect(error.message).toContain('a run that was just submitted may be unknown for up to two minutes');
    expect(((await perform('feed')) as errors.ServiceError).retryForMs).toBeUndefined();
  });

  it('quotes the German text in an English message', async () => {
    context.service.answer(refuse(400, 'Ungültiger Cursor.'));
    const error = (await perform('feed')) as errors.ServiceError;
    expect(error.germanText).toBe('Ungültiger Cursor.');
    expect(error.message).toBe(
      'the delivery feed (GET /scans) returned 400: the request is invalid; check the cursor and the filters; the service says: "Ungültiger Cursor."',
    );
  });

  it('shortens the German text to one line without control characters or half characters', async () => {
    context.service.answer(refuse(500, `a\u0000\u001b[31m\nb\u2028c\u202e ${'𝄞'.repeat(1000)}`));
    const { germanText = '' } = (await perform('feed')) as errors.ServiceError;
    expect(germanText.startsWith('a [31m b c 𝄞𝄞')).toBe(true);
    expect([...germanText]).toHaveLength(300);
    expect(germanText.endsWith('𝄞…')).toBe(true);
  });

  it.each([
    ['is HTML', reply(502, '<html>canary-page</html>', { 'content-type': 'text/html' })],
    ['is empty', reply(502)],
    ['is truncated JSON', reply(502, '{"error":"canary-')],
    ['has another shape', reply(502, { error: { text: 'canary' } })],
    ['is huge', reply(502, { error: 'canary'.repeat(100_000) })],
    ['says nothing', reply(502, { error: ' \n' })],
  ])('is reported without a text when its body %s', async (_, answer) => {
    context.service.answer(answer);
    const error = (await perform('feed')) as errors.ServiceError;
    expect(error).toMatchObject({ kind: 'http_502' });
    expect(error.germanText).toBeUndefined();
    expect(error.message).not.toContain('canary');
  });
});

describe('Retry-After', () => {
  async function pause(headers: Record<string, string>, status = 429): Promise<number | undefined> {
    context.service.answer(refuse(status, 'Zu viele Anfragen', headers));
    const client = context.client({ clock: new HandClock() });
    return ((await rejection(operations.feed(client))) as errors.ServiceError).retryAfterMs;
  }
  const date = 'Fri, 02 Jan 2026 12:00:00 GMT'; // three hours off the client's clock

  it.each([
    ['seconds', { 'retry-after': '17' }, 17_000],
    ['no pause', { 'retry-after': '0' }, 0],
    ['at most an hour', { 'retry-after': '999999999999' }, 3_600_000],
    ['a date, relative to the date of the response', { 'retry-after': 'Fri, 02 Jan 2026 12:00:30 GMT', date }, 30_000],
    ['a date of the old form', { 'retry-after': 'Friday, 02-Jan-26 12:00:30 GMT', date }, 30_000],
    ['a date of the oldest form, which is UTC', { 'retry-after': 'Fri Jan  2 12:00:30 2026', date }, 30_000],
    ['a date in the past', { 'retry-after': 'Fri, 02 Jan 2026 11:00:00 GMT', date }, 0],
    ['a date days ahead', { 'retry-after': 'Mon, 05 Jan 2026 12:00:00 GMT', date }, 3_600_000],
    ['an invalid value', { 'retry-after': 'bald' }, undefined],
    ['a negative value', { 'retry-after': '-5' }, undefined],
    ['no value', {}, undefined],
  ])('is parsed: %s', async (_, headers, expected) => {
    expect(await pause(headers as Record<string, string>)).toBe(expected);
  });

  it('is compared with the local clock when the response has no date', async () => {
    context.service.answer((response) => {
      response.sendDate = false;
      response.writeHead(503, { 'retry-after': 'Fri, 02 Jan 2026 09:00:05 GMT' }).end();
    });
    const error = await rejection(operations.feed(context.client({ clock: new HandClock() })));
    expect(error).toMatchObject({ kind: 'http_503', retryAfterMs: 5_000 });
  });

  it('applies to every status', async () => {
    expect(await pause({ 'retry-after': '3' }, 401)).toBe(3_000);
    expect(await pause({ 'retry-after': '3' }, 503)).toBe(3_000);
  });
});
