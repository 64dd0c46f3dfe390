import { describe, expect, it } from 'vitest';
import { switchesSchema } from '../../src/emulator/model/switches.js';
import { ids, revisions, setUp } from './client.js';

describe('the control routes at /_emulator', () => {
  it('show all switches, and change those that a patch names', async () => {
    const { control, emulator } = await setUp();
    const before = (await control('GET', '/switches')).json;
    expect(Object.keys(before).sort()).toEqual(Object.keys(switchesSchema.shape).sort());
    const patch = { latencyMs: 1, redelivery: 'behind', faults: [{ kind: 'status', status: 500, share: 0.5 }] };
    const after = (await control('PATCH', '/switches', patch)).json;
    expect(after).toMatchObject({ ...before, ...patch });
    expect(emulator.switches).toEqual(after);
    expect((await control('PATCH', '/switches', { faults: [] })).json.faults).toEqual([]);
  });

  it.each([
    [{ latencyMs: -1 }],
    [{ latency: 5 }],
    [{ failureShare: 2 }],
    [{ cursors: 'odd' }],
    [{ faults: [{ kind: 'x' }] }],
    [[]],
    ['x'],
  ])('change nothing when the switches are %j', async (patch) => {
    const { control, emulator } = await setUp();
    const before = emulator.switches;
    const reply = await control('PATCH', '/switches', patch);
    expect(reply.status).toBe(400);
    expect(reply.json.error).toMatch(/./);
    expect(emulator.switches).toEqual(before);
  });

  it('add generated and scripted runs', async () => {
    const { control, page } = await setUp();
    const made = (await control('POST', '/runs', { count: 3 })).json.runs as { scanId: string }[];
    await control('POST', '/runs', {
      runs: [
        { scanId: 'a', revision: 2 },
        { scanId: 'b', dataJson: '{"x":1.10}' },
      ],
    });
    await control('POST', '/runs');
    const { items } = await page();
    expect(ids(items).slice(0, 5)).toEqual([...made.map((run) => run.scanId), 'a', 'b']);
    expect(items).toHaveLength(6);
  });

  it('correct a named run, or any number of runs', async () => {
    const { control, drain } = await setUp({ history: 20 });
    const { items } = await drain();
    const first = String(items[0]?.scanId);
    expect((await control('POST', '/corrections', { scanId: first, data: { neu: true } })).json).toEqual({
      runs: [{ scanId: first, revision: 2, status: 'completed' }],
    });
    await control('POST', '/corrections', { count: 4 });
    const after = (await drain()).items;
    expect(after.reduce((sum, item) => sum + (item.revision as number), 0)).toBe(25);
    expect(after.find((item) => item.scanId === first)?.data).toEqual({ neu: true });
    expect((await control('POST', '/corrections', { scanId: 'unknown' })).status).toBe(404);
  });

  it('accept verbatim entries, one per line', async () => {
    const { emulator, get } = await setUp();
    const lines = ['{"scanId":"a","n":12345678901234567890}', '{"s":"\\udc00"}'];
    const response = await fetch(`${emulator.controlUrl}/entries`, { method: 'POST', body: `${lines.join('\n')}\n` });
    expect(await response.json()).toEqual({ added: 2 });
    expect((await get('/scans')).text).toContain(`[${lines.join(',')}]`);
  });

  it('script single-run answers', async () => {
    const { emulator, get } = await setUp();
    const address = `${emulator.controlUrl}/answers/s-1`;
    await fetch(`${address}?times=1&status=500`, { method: 'PUT', body: '{"error":"Aua."}' });
    await fetch(address, { method: 'PUT', body: '{"n":1.10}' });
    expect(await get('/scans/s-1')).toMatchObject({ status: 500, text: '{"error":"Aua."}' });
    expect(await get('/scans/s-1')).toMatchObject({ status: 200, text: '{"n":1.10}' });
    await fetch(address, { method: 'DELETE' });
    expect((await get('/scans/s-1')).status).toBe(404);
  });

  it('set and remove faults, and invalidate cursors', async () => {
    const { control, get, page } = await setUp({ history: 2 });
    await control('PATCH', '/switches', { faults: [{ kind: 'status', status: 502 }] });
    expect((await get('/scans')).status).toBe(502);
    await control('PATCH', '/switches', { faults: [] });
    const { nextCursor } = await page('limit=1');
    await control('POST', '/cursors/invalidate');
    expect((await get(`/scans?cursor=${nextCursor}`)).status).toBe(400);
  });

  it('count requests', async () => {
    const { control, get } = await setUp();
    await get('/scans');
    expect((await control('GET', '/requests')).json).toEqual({ feed: 1, run: 0, submit: 0 });
  });

  it('add runs to the named organization, and answer 400 when it does not exist', async () => {
    const apiKeys = [
      { key: 'one', organization: 'a' },
      { key: 'two', organization: 'b' },
    ];
    const { control, get } = await setUp({ apiKeys });
    await control('POST', '/runs', { organization: 'b', count: 2 });
    const { items } = (await get('/scans', { authorization: 'Bearer two' })).json as {
      items: Record<string, unknown>[];
    };
    expect(revisions(items)).toHaveLength(2);
    expect((await control('POST', '/runs', { organization: 'c' })).status).toBe(400);
  });
});
