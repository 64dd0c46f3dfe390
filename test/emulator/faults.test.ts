import { describe, expect, it } from 'vitest';
import { form, setUp } from './client.js';

describe('faults', () => {
  it('answer the next N requests with a status, Retry-After and a German body', async () => {
    const { get, emulator } = await setUp({ history: 1 });
    emulator.addFault({ kind: 'status', status: 429, retryAfter: 7, next: 2 });
    for (let i = 0; i < 2; i++) {
      const { status, headers, json } = await get('/scans');
      expect([status, headers.get('retry-after')]).toEqual([429, '7']);
      expect(json.error).toMatch(/^Zu viele Anfragen/);
    }
    expect((await get('/scans')).status).toBe(200);
  });

  it('apply in the order in which they were set, and only to their operation', async () => {
    const { get, submit, emulator } = await setUp({ history: 1 });
    emulator.addFault({ kind: 'status', status: 500, operation: 'submit' });
    emulator.addFault({ kind: 'status', status: 502, operation: 'run', next: 1 });
    emulator.addFault({ kind: 'status', status: 504, operation: 'any' });
    expect((await submit(form())).status).toBe(500);
    expect((await get('/scans/x')).status).toBe(502);
    expect((await get('/scans/x')).status).toBe(504);
    expect((await get('/scans')).status).toBe(504);
    emulator.clearFaults();
    expect((await get('/scans')).status).toBe(200);
  });

  it('affect the same requests, about the given share, when the seed is the same', async () => {
    const statuses = async () => {
      const { get } = await setUp({ seed: 3, switches: { faults: [{ kind: 'status', share: 0.3 }] } });
      const seen: number[] = [];
      for (let i = 0; i < 100; i++) seen.push((await get('/scans')).status);
      return seen;
    };
    const first = await statuses();
    expect(await statuses()).toEqual(first);
    const hit = first.filter((status) => status === 503).length;
    expect(hit).toBeGreaterThan(15);
    expect(hit).toBeLessThan(45);
  });

  it('create no run when a submission is answered with a status', async () => {
    const { submit, emulator } = await setUp({ switches: { processingMs: 0 } });
    emulator.addFault({ kind: 'status', status: 500, next: 1 });
    expect((await submit(form())).status).toBe(500);
    expect([...emulator.entries()]).toHaveLength(0);
  });

  it('redirect with scripted headers', async () => {
    const { get, emulator } = await setUp();
    emulator.addFault({ kind: 'status', status: 302, headers: { location: 'http://anderswo.example/' } });
    const { status, headers } = await get('/scans');
    expect([status, headers.get('location')]).toEqual([302, 'http://anderswo.example/']);
  });

  it('answer with HTML instead of JSON', async () => {
    const { get, emulator } = await setUp();
    emulator.addFault({ kind: 'html' });
    const { status, headers, text } = await get('/scans');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).toMatch(/<h1>/);
  });

  it('answer verbatim when the answer is scripted', async () => {
    const { get, emulator } = await setUp();
    const body = '{"items":[{"n":1.10}],"nextCursor":"c"}';
    emulator.addFault({ kind: 'answer', operation: 'feed', headers: { 'content-type': 'application/json' }, body });
    const { status, text, headers } = await get('/scans');
    expect([status, text, headers.get('content-type')]).toEqual([200, body, 'application/json']);
  });

  it('answer with an empty body or half a body', async () => {
    const { get, emulator } = await setUp({ history: 3 });
    const whole = (await get('/scans')).text;
    emulator.addFault({ kind: 'empty', next: 1 });
    emulator.addFault({ kind: 'half', next: 1 });
    expect(await get('/scans')).toMatchObject({ status: 200, text: '' });
    const half = (await get('/scans')).text;
    expect(Buffer.byteLength(half)).toBe(Buffer.byteLength(whole) >> 1);
    expect(whole.startsWith(half)).toBe(true);
  });

  it.each([true, false])('cut the body in the middle (chunked: %s)', async (chunked) => {
    const { get, emulator } = await setUp({ history: 3 });
    emulator.addFault({ kind: 'cut', chunked, afterBytes: 100, next: 1 });
    await expect(get('/scans')).rejects.toThrow();
    expect((await get('/scans')).status).toBe(200);
  });

  it('lose the answer to a submission after its run was created', async () => {
    const { submit, page, emulator } = await setUp({ switches: { processingMs: 0 } });
    emulator.addFault({ kind: 'cut', next: 1 });
    const key = { 'idempotency-key': 'k' };
    await expect(submit(form(), 'environment=prod', key)).rejects.toThrow();
    expect((await submit(form(), 'environment=prod', key)).status).toBe(200);
    expect((await page()).items).toHaveLength(1);
  });

  it('destroy the connection before any answer', async () => {
    const { get, emulator } = await setUp();
    emulator.addFault({ kind: 'reset', next: 1 });
    await expect(get('/scans')).rejects.toThrow();
  });

  it('drip the body with a pause before each piece', async () => {
    const waits: number[] = [];
    const sleep = async (ms: number) => {
      waits.push(ms);
    };
    const { get, emulator } = await setUp({ history: 3, sleep });
    const whole = (await get('/scans')).text;
    emulator.addFault({ kind: 'slow', dripBytes: 100, dripMs: 250 });
    expect((await get('/scans')).text).toBe(whole);
    expect(waits).toEqual(Array(Math.ceil(Buffer.byteLength(whole) / 100)).fill(250));
  });

  it('stop dripping when the client disconnects', async () => {
    const gone = new AbortController();
    let stopped: () => void = () => undefined;
    const stopping = new Promise<void>((resolve) => {
      stopped = resolve;
    });
    let pieces = 0;
    const sleep = (_ms: number, signal: AbortSignal): Promise<void> => {
      pieces++;
      gone.abort();
      return new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          stopped();
          resolve();
        });
      });
    };
    const { emulator } = await setUp({ history: 3, sleep });
    emulator.addFault({ kind: 'slow', next: 1 });
    const headers = { authorization: `Bearer ${emulator.apiKey}` };
    await expect(
      fetch(`${emulator.url}/scans`, { headers, signal: gone.signal }).then((response) => response.text()),
    ).rejects.toThrow();
    await stopping;
    await emulator.close();
    expect(pieces).toBe(1);
  });

  it('never answer when they hang, and let the emulator close', async () => {
    const { emulator, get } = await setUp();
    emulator.addFault({ kind: 'hang' });
    const seen = emulator.requests.next();
    const answer = get('/scans').then(
      () => 'answered',
      () => 'aborted',
    );
    expect(await seen).toMatchObject({ operation: 'feed', status: null, fault: 'hang' });
    await emulator.close();
    expect(await answer).toBe('aborted');
  });

  it('reject the next request that has a cursor', async () => {
    const { get, page, emulator } = await setUp({ history: 3 });
    const { nextCursor } = await page('limit=1');
    emulator.addFault({ kind: 'invalid-cursor', next: 1 });
    expect((await get('/scans')).status).toBe(200);
    expect((await get(`/scans?cursor=${nextCursor}`)).json).toEqual({ error: 'Der Cursor ist ungültig.' });
    expect((await get(`/scans?cursor=${nextCursor}`)).status).toBe(200);
  });

  it('leave nextCursor empty, missing or unchanged', async () => {
    const { get, page, emulator } = await setUp({ history: 9 });
    const { nextCursor } = await page('limit=1');
    for (const kind of ['empty-cursor', 'missing-cursor', 'stuck-cursor'] as const)
      emulator.addFault({ kind, next: 1 });
    const next = async () => (await get(`/scans?cursor=${nextCursor}&limit=2`)).json;
    expect(await next()).toMatchObject({ items: [{}, {}], nextCursor: '' });
    expect(Object.keys(await next())).toEqual(['items']);
    expect(await next()).toMatchObject({ items: [{}, {}], nextCursor });
  });

  it('are refused when they are invalid', async () => {
    const { emulator } = await setUp();
    expect(() => emulator.addFault({ kind: 'nope' as 'cut' })).toThrow(/kind/);
    expect(() => emulator.addFault({ kind: 'cut', share: 2 })).toThrow(/share/);
  });
});
