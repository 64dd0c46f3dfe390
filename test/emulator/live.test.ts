import { describe, expect, it } from 'vitest';
import { ids, revisions, setUp } from './client.js';

const minute = 60_000;

describe('live runs and corrections', () => {
  it('do not appear when no rate is set', async () => {
    const { drain, advance } = await setUp({ history: 10 });
    const before = await drain();
    advance(86_400_000);
    expect(await drain()).toEqual(before);
  });

  it('appear at the rate that is set, and stop when it is 0', async () => {
    const { drain, advance, emulator } = await setUp({ history: 5 });
    advance(minute);
    emulator.set({ newRunsPerSecond: 3 });
    advance(minute);
    expect((await drain('limit=200')).items).toHaveLength(5 + 180);
    emulator.set({ newRunsPerSecond: 0.5 });
    advance(minute);
    emulator.set({ newRunsPerSecond: 0 });
    advance(minute);
    expect((await drain('limit=200')).items).toHaveLength(5 + 180 + 30);
  });

  it('are all seen by a polling client when it polls at any time', async () => {
    const { page, advance, drain, emulator } = await setUp({
      history: 10,
      switches: { newRunsPerSecond: 40, correctionsPerMinute: 200, processingMs: 0 },
    });
    const seen = new Map<string, number>();
    let cursor = (await page('limit=1&since=0')).nextCursor;
    seen.set(ids((await page('limit=1')).items)[0] as string, 1);
    for (let i = 0; i < 120; i++) {
      advance((i * 37) % 61);
      if (i % 5 === 0) emulator.appendCount(1);
      const next = await page(`cursor=${cursor}&limit=${1 + (i % 40)}`);
      for (const item of next.items) seen.set(String(item.scanId), item.revision as number);
      cursor = next.nextCursor;
    }
    emulator.set({ newRunsPerSecond: 0, correctionsPerMinute: 0 });
    for (;;) {
      const next = await page(`cursor=${cursor}&limit=200`);
      if (next.items.length === 0) break;
      for (const item of next.items) seen.set(String(item.scanId), item.revision as number);
      cursor = next.nextCursor;
    }
    const truth = (await drain('limit=200')).items;
    expect([...seen].map(([id, revision]) => `${id}@${revision}`).sort()).toEqual(revisions(truth).sort());
    expect(truth.length).toBeGreaterThan(100);
    expect(truth.some((item) => (item.revision as number) > 1)).toBe(true);
  });

  it('raise revisions at the rate that is set', async () => {
    const { drain, advance } = await setUp({ history: 200, switches: { correctionsPerMinute: 10 } });
    advance(3 * minute);
    const raised = (await drain('limit=200')).items.map((item) => (item.revision as number) - 1);
    expect(raised.reduce((sum, n) => sum + n, 0)).toBe(30);
  });

  it('appear late, before issued cursors, when a share of late runs is set', async () => {
    const { page, drain, advance, emulator } = await setUp({
      switches: { newRunsPerSecond: 1, lateShare: 0.3, lateByMs: 10 * minute },
    });
    advance(5 * minute);
    const early = await drain('limit=200');
    emulator.set({ newRunsPerSecond: 0 });
    advance(10 * minute);
    const all = ids((await drain('limit=200')).items);
    const late = all.filter((id) => !ids(early.items).includes(id));
    expect(all).toHaveLength(300);
    expect(late.length).toBeGreaterThan(60);
    expect(late.length).toBeLessThan(120);
    const continued = ids((await page(`cursor=${early.cursor}&limit=200`)).items);
    // Only runs at the very end, with none after them yet, are still ahead of the cursor.
    expect(continued).toEqual(all.slice(300 - continued.length));
    expect(continued.length).toBeLessThan(20);
  });

  it('do not move a cursor when they are not visible yet', async () => {
    const { page, advance, emulator } = await setUp({
      switches: { newRunsPerSecond: 1, lateShare: 1, lateByMs: minute },
    });
    const { nextCursor } = await page();
    advance(30_000);
    expect(await page(`cursor=${nextCursor}`)).toEqual({ items: [], nextCursor });
    emulator.set({ newRunsPerSecond: 0 });
    advance(minute);
    expect((await page(`cursor=${nextCursor}&limit=200`)).items).toHaveLength(30);
  });

  it('do not appear in a millisecond that was already read when a rate is set', async () => {
    const { page, drain, advance, emulator } = await setUp();
    emulator.appendCount(1);
    const { nextCursor } = await page();
    emulator.set({ newRunsPerSecond: 50_000 });
    expect((await drain()).items).toHaveLength(1);
    advance(2);
    expect((await page(`cursor=${nextCursor}&limit=200`)).items).toHaveLength(100);
    expect((await drain()).items).toHaveLength(101);
  });

  it('do not change existing runs when shares are changed', async () => {
    const { drain, advance, emulator } = await setUp({ history: 50, switches: { newRunsPerSecond: 1 } });
    advance(minute);
    const before = await drain('limit=200');
    emulator.set({ failureShare: 1, testEnvironmentShare: 1 });
    expect((await drain('limit=200')).items).toEqual(before.items);
    advance(minute);
    const added = (await drain('limit=200&status=completed,failed&environment=all')).items.slice(110);
    expect(added).toHaveLength(60);
    expect(new Set(added.map((item) => `${item.status}/${item.environment}`))).toEqual(new Set(['failed/test']));
  });

  it('are listed at the end when the clock goes backwards', async () => {
    const { page, advance, emulator } = await setUp();
    emulator.appendCount(1);
    const { nextCursor } = await page();
    advance(-minute);
    const [run] = emulator.appendCount(1);
    expect(ids((await page(`cursor=${nextCursor}`)).items)).toEqual([run?.scanId]);
  });

  it('are removed, oldest first, when they exceed the limit', async () => {
    const { drain, get, emulator, advance } = await setUp({ liveLimit: 20, history: 3 });
    const runs: string[] = [];
    for (let i = 0; i < 30; i++) {
      advance(1);
      runs.push(...emulator.appendCount(1).map((run) => run.scanId));
    }
    const kept = ids((await drain()).items).slice(3);
    expect(kept).toEqual(runs.slice(10));
    expect((await get(`/scans/${runs[0]}`)).status).toBe(404);
  });

  it('do not return to the first revision when a corrected run is removed', async () => {
    const { drain, get, emulator, advance } = await setUp({ liveLimit: 2, history: 3 });
    const [scanId] = ids((await drain()).items) as [string];
    emulator.correct(scanId);
    advance(1);
    emulator.appendCount(2);
    expect((await get(`/scans/${scanId}`)).status).toBe(404);
    expect(ids((await drain()).items)).not.toContain(scanId);
  });
});

it('waits before every answer when a latency is set', async () => {
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
  };
  const { get } = await setUp({ sleep, switches: { latencyMs: 300 } });
  await get('/scans');
  await get('/scans/x');
  expect(waits).toEqual([300, 300]);
});

describe('scripts', () => {
  it('append runs with the given values', async () => {
    const { page, emulator } = await setUp();
    const spec = {
      scanId: 'scan-1',
      revision: 4,
      environment: 'test' as const,
      documentType: null,
      fileName: 'a.pdf',
      partnerName: null,
      ocrConfidence: 0.5,
      submittedAt: '2026-01-01T00:00:00Z',
      completedAt: null,
      data: { a: [1, null] },
    };
    emulator.appendRuns([spec]);
    const [item] = (await page('environment=test')).items;
    expect(item).toMatchObject({
      ...spec,
      documentType: { slug: null, name: null },
      submittedAt: '2026-01-01T00:00:00.000Z',
      deliveredAt: '2026-10-01T12:00:00.000Z',
    });
  });

  it('append revisions of a run in any order, and the single run shows the highest', async () => {
    const { page, get, emulator } = await setUp();
    emulator.appendRuns([{ scanId: 's' }, { scanId: 's', revision: 3 }, { scanId: 's', revision: 2 }]);
    expect(revisions((await page()).items)).toEqual(['s@1', 's@3', 's@2']);
    expect((await get('/scans/s')).json.revision).toBe(3);
  });

  it('append a run before issued cursors or in the future', async () => {
    const { page, get, emulator, advance } = await setUp({ history: 3 });
    const { nextCursor } = await page();
    const now = Date.UTC(2026, 9, 1, 12);
    const [late, future] = emulator.appendRuns([{ deliveredAt: now - 20 * 86_400_000 }, { deliveredAt: now + 5000 }]);
    expect((await page(`cursor=${nextCursor}`)).items).toEqual([]);
    expect(ids((await page()).items)).toContain(late?.scanId);
    expect((await get(`/scans/${future?.scanId}`)).json.status).toBe('processing');
    advance(5000);
    expect(ids((await page(`cursor=${nextCursor}`)).items)).toEqual([future?.scanId]);
  });

  it('keep every digit when results are JSON text', async () => {
    const { get, emulator } = await setUp();
    const dataJson = '{"n":12345678901234567890,"m":1.10,"e":1e400}';
    const [run] = emulator.appendRuns([{ dataJson }]);
    expect((await get('/scans')).text).toContain(`"data":${dataJson},`);
    expect((await get(`/scans/${run?.scanId}`)).text).toContain(`"data":${dataJson},`);
  });

  it('serve entries byte for byte when they are verbatim', async () => {
    const { get, emulator } = await setUp();
    const texts = ['{"scanId":"a","n":1.10,"x":"\\ud800"}', 'null', '{"scanId":"a",  "scanId":"b"}', '[1,2]'];
    emulator.appendRaw(texts);
    const { text } = await get('/scans');
    expect(text.startsWith(`{"items":[${texts.join(',')}],"nextCursor":"`)).toBe(true);
  });

  it('serve bytes unchanged when they are not UTF-8', async () => {
    const { emulator } = await setUp();
    emulator.appendRaw(['1', new Uint8Array([0x22, 0xff, 0xc3, 0x22])]);
    const response = await fetch(`${emulator.url}/scans`, { headers: { authorization: `Bearer ${emulator.apiKey}` } });
    const bytes = Buffer.from(await response.arrayBuffer());
    const expected = Buffer.concat([
      Buffer.from('{"items":[1,'),
      Buffer.from([0x22, 0xff, 0xc3, 0x22]),
      Buffer.from(']'),
    ]);
    expect(bytes.subarray(0, expected.length).equals(expected)).toBe(true);
  });

  it('filter verbatim entries by their given fields', async () => {
    const { page, get, emulator } = await setUp();
    const text = '{"scanId":"v","revision":1}';
    emulator.appendRaw([{ text, scanId: 'v', status: 'failed', environment: 'test', documentType: 'gutschrift' }]);
    expect((await page()).items).toEqual([]);
    expect(ids((await page('status=failed&environment=test&documentType=gutschrift')).items)).toEqual(['v']);
    expect((await get('/scans/v')).text).toBe(text);
  });
});

describe('the request log', () => {
  it('counts requests, and shows the query, entries and answer of each', async () => {
    const { page, get, emulator } = await setUp({ history: 3 });
    const asked = emulator.requests.next((record) => record.operation === 'feed');
    const { items, nextCursor } = await page('limit=2&markdown=1');
    await get('/scans/x');
    expect(await asked).toMatchObject({
      number: 1,
      operation: 'feed',
      query: { limit: '2', markdown: '1' },
      organization: 'demo',
      status: 200,
      nextCursor,
      served: items.map(({ scanId, revision }) => ({ scanId, revision })),
      fault: null,
    });
    expect([emulator.requests.count(), emulator.requests.count('feed'), emulator.requests.count('run')]).toEqual([
      2, 1, 1,
    ]);
  });
});
