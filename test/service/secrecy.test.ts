import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { currentApiKey } from '../../src/service/api-key.js';
import { everythingOf } from '../support/canaries/capture-leaks.js';
import { hangUp, raw, refuse, reply, ScriptedService, silence } from '../support/scripted-service.js';
import { HandClock, KEY, operations, page, rejection, useService } from './harness.js';

const context = useService();
const CURSOR = 'canary-cursor';

describe('an error', () => {
  const echo = `Schlüssel ${KEY} und Cursor ${CURSOR} sind ungültig`;

  it.each([
    ['a refusal that repeats them', refuse(400, echo)],
    ['a refusal of the key that repeats them', refuse(401, echo)],
    ['a redirect that repeats them', refuse(302, echo, { location: `https://elsewhere.example/?${KEY}&${CURSOR}` })],
    ['an answer that is not JSON', reply(200, `<html>${echo}</html>`)],
    ['an answer of the wrong shape', reply(200, { [CURSOR]: KEY, items: KEY })],
    ['a header that repeats them', raw(`HTTP/1.1 200 OK\r\nx: ${KEY}${CURSOR}\r\ncontent-length: 90\r\n\r\n{`)],
    ['a broken answer', raw(`${KEY} ${CURSOR}\r\n\r\n`)],
    ['a connection that ends', hangUp],
  ])('shows neither key nor cursor after %s', async (_, answer) => {
    context.service.answer(answer);
    const error = await rejection(context.client().readPage({ ...page, start: { cursor: CURSOR } }));
    expect(everythingOf(error)).not.toMatch(/canary/);
  });

  it('shows neither after a timeout or when the client is closed', async () => {
    const clock = new HandClock();
    context.service.answer(silence, silence);
    const client = context.client({ clock });
    const request = { ...page, start: { cursor: CURSOR } };
    const expiring = rejection(client.readPage(request));
    await context.service.arrived(1);
    clock.expire();
    expect(everythingOf(await expiring)).not.toMatch(/canary/);
    const closing = rejection(client.readPage(request));
    await context.service.arrived(2);
    await client.close();
    expect(everythingOf(await closing)).not.toMatch(/canary/);
  });

  it('shows nothing of the document of a submission', async () => {
    context.service.answer(refuse(500, 'Fehler'));
    expect(everythingOf(await rejection(operations.submit(context.client())))).not.toMatch(/canary/);
  });
});

describe('the client', () => {
  it('shows neither its key nor its URL when inspected', () => {
    const client = context.client();
    expect(inspect(client, { showHidden: true, depth: 20 })).not.toContain(KEY);
    expect(JSON.stringify(client)).not.toContain(KEY);
  });
});

describe('a key', () => {
  it.each([
    ['a line break', `${KEY}\n`],
    ['a NUL', `${KEY}\0`],
    ['a space', `${KEY} x`],
    ['an umlaut', `${KEY}ü`],
    ['nothing', ''],
    ['something else than text', undefined as unknown as string],
  ])('is neither sent nor shown when it has %s', async (_, apiKey) => {
    const error = await rejection(operations.feed(context.client({ apiKey: () => apiKey })));
    expect(error).toMatchObject({ kind: 'api_key' });
    expect(error).toMatchObject({ kind: 'api_key', action: 'hold' });
    expect(everythingOf(error)).not.toMatch(/canary/);
    expect(context.service.connections).toBe(0);
  });

  it('is reported as missing when there is none, although it needs no file', async () => {
    const error = await rejection(currentApiKey(undefined as never));
    expect(error).toMatchObject({ kind: 'api_key', message: 'the API key is empty; set one' });
  });

  it('is reported only by the error code when it cannot be read', async () => {
    const apiKey = () => Promise.reject(Object.assign(new Error(`ENOENT: ${KEY}`), { code: 'ENOENT', path: KEY }));
    const error = await rejection(operations.feed(context.client({ apiKey })));
    expect((error as Error).message).toBe('the API key could not be read (ENOENT); check the file that contains it');
    expect(everythingOf(error)).not.toMatch(/canary/);
  });

  it('is sent only to the configured origin, wherever redirects and status URLs point', async () => {
    const elsewhere = await ScriptedService.start();
    const location = `${elsewhere.baseUrl}/scans/s-1`;
    const client = context.client();
    context.service.answer(
      refuse(307, 'woanders', { location }),
      refuse(308, 'woanders', { location }),
      reply(202, { scanId: 's-1', status: 'processing', statusUrl: location }, { location }),
      reply(200, { scanId: 's-1' }),
    );
    await rejection(operations.feed(client));
    await rejection(operations.submit(client));
    const { scanId } = await operations.submit(client);
    await client.readRun(scanId, { markdown: false, maxBytes: 1000 });
    expect(context.service.requests).toHaveLength(4);
    expect(elsewhere.connections).toBe(0);
    await elsewhere.stop();
  });
});
